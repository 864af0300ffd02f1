"""``rivermouth accept-deletes`` before and after Spark: what it refuses, what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.cli.accepting import versions_in
from rivermouth.errors import ConfigError
from rivermouth.run.accepting import AcceptedDelete
from rivermouth.run.outcome import deletes_accepted, shown_delete, verified
from rivermouth.verification import PipelineProof, Verification
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit

ONE = AcceptedDelete(12, "DELETE", '["(id = 5)"]', 1_790_000_000_000, 1, 1, True)
MANY = AcceptedDelete(15, "DELETE", "id > 5", 1_790_000_000_000, None, 2_000, False)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("12", [12]),
        ("12,15-17", [12, 15, 16, 17]),
        (" 17 - 17 , 3", [3, 17]),
        ("3-5,4", [3, 4, 5]),
        ("0-999", [*range(1000)]),
    ],
)
def test_versions_are_numbers_and_ranges(text: str, versions: list[int]) -> None:
    assert versions_in(text) == versions


@pytest.mark.parametrize("text", ["", "x", "12,", "5-3", "-3", "1-", "1.5", "0-1000", "1" * 20])
def test_what_is_no_version_is_refused_before_spark_starts(
    rivermouth: Rivermouth, lake_yml: Path, text: str
) -> None:
    with pytest.raises(ConfigError):
        versions_in(text)
    ended = rivermouth("accept-deletes", lake_yml, "bids", "--versions", text)
    assert ended.code == 2
    assert "is no version and no range; write 12,15-17" in ended.err
    assert not (lake_yml.parent / "lake").exists()


def test_a_pipeline_that_is_not_configured_is_refused(
    rivermouth: Rivermouth, lake_yml: Path
) -> None:
    ended = rivermouth("accept-deletes", lake_yml, "bid", "--versions", "3")
    assert ended.code == 2
    assert 'there is no pipeline "bid"' in ended.err


def test_each_delete_is_told_with_what_the_log_knows_of_it() -> None:
    assert shown_delete("orders", ONE) == (
        'orders: version 12, 2026-09-21 14:13:20 UTC: DELETE ["(id = 5)"]: 1 row'
    )
    assert shown_delete("orders", MANY).endswith(
        ": DELETE id > 5: at most 2,000 rows, and nobody can tell which any more"
    )
    assert deletes_accepted((ONE, MANY), dry_run=False) == "OK: accepted 2 DELETEs, 2,001 rows"
    dry = deletes_accepted((ONE,), dry_run=True)
    assert dry == "OK: dry run, nothing was written: 1 DELETE, 1 row"
    assert ONE.as_dict()["predicate"] == '["(id = 5)"]'


def test_verify_says_how_many_rows_are_gone_on_purpose() -> None:
    proof = PipelineProof("orders", 3, 100, 0, None, erased=1_200)
    assert "  orders: 1,200 deleted on purpose, as its ledger says" in verified(
        Verification([proof])
    )
    assert "purpose" not in verified(Verification([PipelineProof("orders", 3, 100, 0, None)]))
