"""What doctor says of pipelines that send: their topics, their functions, and the platform."""

from __future__ import annotations

import pytest

from rivermouth.config import unresolved
from rivermouth.operate.doctor import Check, check_config
from tests.kafka.test_sinks import calling, sending
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def checks(lake: Lake) -> dict[str, Check]:
    return {each.name: each for each in check_config(lake.file, unresolved)}


def test_what_a_pipeline_sends_to_is_looked_for_and_where_it_runs_is_asked(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIVERMOUTH_PLATFORM", raising=False)
    lake.topic("doctored-in")
    lake.topic("doctored-out")
    lake.configure(
        once=sending("doctored-in", "doctored-out", delivery="at-most-once"),
        least=sending("doctored-in", "doctored-missing"),
        called=calling("doctored-in", "tests.kafka.called:note"),
        broken=calling("doctored-in", "tests.kafka.called:missing"),
    )

    found = checks(lake)

    sent = "format json, records are sent to"
    assert found["pipeline once"] == Check(
        "pipeline once", True, f"{sent} doctored-out, at-most-once"
    )
    assert found["pipeline called"].found == f"{sent} tests.kafka.called:note, at-least-once"
    assert not found["pipeline broken"].ok
    assert "missing" in found["pipeline broken"].found
    assert found["topic doctored-out"].ok
    assert "RM302" in found["topic doctored-missing"].found

    monkeypatch.setenv("RIVERMOUTH_PLATFORM", "serverless")
    found = checks(lake)
    assert [name for name, each in found.items() if "RM209" in each.found] == [
        "pipeline once",
        "pipeline called",
        "pipeline broken",
    ]
    assert found["pipeline least"].ok
