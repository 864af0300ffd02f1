"""What ``rivermouth.testing`` says where a run did not die, and where nothing is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.testing import assert_exactly_once, kill_at

pytestmark = pytest.mark.unit

CONFIG = """\
version: 1
kafka: {bootstrap.servers: "localhost:1"}
warehouse: ./lake
pipelines:
  bids:
    source: {topics: [bids], format: json}
    schema: "price BIGINT"
    target: {table: bronze.bids}
"""


def test_a_run_that_ends_before_the_point_fails_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as failed:
        kill_at("P6", tmp_path / "none.yml", times=2)
    said = str(failed.value)
    assert said.startswith("the run did not die at P6, passed 2 time(s); it ended with exit code 2")
    assert "RM101" in said


def test_what_cannot_be_checked_is_not_exactly_once(tmp_path: Path) -> None:
    file = tmp_path / "lake.yml"
    file.write_text(CONFIG, encoding="utf-8")
    for pipeline in (None, "bids"):
        with pytest.raises(AssertionError, match="bids: not checked: there is no table yet"):
            assert_exactly_once(file, pipeline)
