"""The page as text: its figures are the ledger's, and nothing that others wrote is carried out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.errors import ConfigError, KafkaUnreachable, TopicMissing
from rivermouth.protocol.entry import Entry
from rivermouth.report.markup import state
from rivermouth.report.page import embedded, page
from rivermouth.report.reading import Told, read_report
from tests.report.made import HOSTILE, MadeLake, MadePipeline, hostile, together
from tests.unit.operate.doubles import Answering, configured

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> MadeLake:
    return MadeLake(tmp_path_factory.mktemp("report"), (HOSTILE.encode(), b"\xff\xfe"))


def data_of(text: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return list(json.loads(found[1]))


def records_in(entries: Sequence[Entry]) -> int:
    return sum(each.records for entry in entries for each in entry.rows or ())


def test_the_figures_on_the_page_are_those_of_the_ledger(lake: MadeLake) -> None:
    text = page(lake.report())
    for made, told in zip(lake.made.values(), data_of(text), strict=True):
        bad = sum(each.quarantined for entry in made.entries for each in entry.rows or ())
        offsets = sum(each.span for entry in made.entries for each in entry.ranges)
        assert sum(told["records"]) == records_in(made.entries)
        assert sum(told["bad"]) == bad == sum(sum(each) for _, each in told["codes"])
        assert sum(told["bytes"]) == made.size
        assert sum(told["commits"]) == len(made.entries)
        assert sum(all_ for _, all_, _ in told["heat"]["rows"]) == offsets
        assert all(sum(cells) == all_ for _, all_, cells in told["heat"]["rows"])
        assert f"{len(made.entries):,} entries, {offsets:,} offsets" in text
    assert "<strong>2,620 offsets were lost:</strong>" in text
    assert max(filter(None, data_of(text)[0]["between"])) == 110 * 60
    assert "RM406" in text
    assert [code for code, _ in data_of(text)[2]["codes"]] == ["RM603", "RM602", "RM605"]


def test_only_the_newest_commits_are_read_where_so_many_are_asked_for(lake: MadeLake) -> None:
    text = page(lake.report(commits=20))
    for name, told in zip(lake.made, data_of(text), strict=True):
        alone = 19 if name == "payments" else 20  # one commit added a column
        assert sum(told["records"]) == records_in(lake.made[name].entries[-alone:])
    assert text.count("The newest 20 commits") == 3


def test_what_others_wrote_is_text_wherever_it_stands(tmp_path: Path) -> None:
    text = page(hostile(tmp_path))
    assert "<img" not in text
    assert text.count("</script>") == 3
    assert text.count("&lt;/script&gt;&lt;img") > 15
    [told] = data_of(text)
    assert told["name"] == HOSTILE
    assert told["codes"] == [[HOSTILE, told["bad"]]]
    assert "<img" not in state("<img>")
    assert json.loads(embedded([HOSTILE, "\u2028"])) == [HOSTILE, "\u2028"]


def test_records_are_shown_only_where_somebody_asks_for_them(lake: MadeLake) -> None:
    assert "onerror" not in page(lake.report())
    shown = page(lake.report(samples=4))
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in shown
    assert r"\xff\xfe" in shown


def test_the_page_asks_for_nothing_and_runs_only_its_own_scripts(lake: MadeLake) -> None:
    text = page(lake.report())
    assert re.findall(r'(?:src|href)="(?!#|data:)', text) == []
    assert "connect-src" not in text
    assert "connect-src 'self'" in page(lake.report(), refresh_s=5)
    assert text.count("'sha256-") == 3
    assert "Permission is hereby granted" in text


def test_a_hundred_pipelines_fit_into_a_megabyte(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"schema": "id BIGINT"}
    names = [f"a_pipeline_with_a_long_name_{n:03}" for n in range(100)]
    config = configured(tmp_path, **dict.fromkeys(names, settings))
    made = MadePipeline(config, names[0])
    for n in range(50):
        made.waits(15)
        many = [123_456 + 777 * n + p for p in range(24)]
        made.read(many, {f"RM60{n % 4}": 17} if n % 5 == 0 else None, lag_s=123.45 + n)
    known = Answering(made.facts(), failing={"facts": KafkaUnreachable("no broker answers")})
    found = read_report(config, kafka=known)
    text = page(replace(found, pipelines=found.pipelines[:1] * 100))
    assert text.count("<section") == 100
    assert len(data_of(text)[99]["records"]) == 50
    assert len(text.encode()) < 1_000_000, len(text)


def test_without_kafka_the_state_is_unknown_and_the_ledger_is_told(lake: MadeLake) -> None:
    away = Answering(together([]), failing={"facts": KafkaUnreachable("no broker answers")})
    text = page(lake.report(kafka=away))
    assert text.count("UNKNOWN") == 6
    assert "no broker answers" in text
    orders = lake.made["orders"]
    assert sum(data_of(text)[0]["records"]) == records_in(orders.entries)


def small(folder: Path) -> MadePipeline:
    """A pipeline with three batches, of which the second has bad records."""
    config = configured(folder, p={"schema": "id BIGINT"}, q={"schema": "id BIGINT"})
    made = MadePipeline(config, "p")
    for bad in (None, {"RM602": 2}, None):
        made.waits(1)
        made.read([10, 10], bad)
    return made


def told(made: MadePipeline) -> Told:
    known = Answering(made.facts(), failing={"q": TopicMissing("no topic q")})
    return read_report(made.config, kafka=known).pipelines[0]


def test_a_log_that_cannot_be_read_is_told_in_its_place(tmp_path: Path) -> None:
    made = small(tmp_path)
    (tmp_path / "lake/s/p/_delta_log" / f"{2:020d}.json").write_text("{")
    known = Answering(made.facts(), failing={"q": TopicMissing("no topic q")})
    found = read_report(made.config, kafka=known)
    assert [bool(each.problem) for each in found.pipelines] == [True, False]
    assert "Its commits cannot be read" in page(found)


def test_a_quarantine_that_cannot_be_read_leaves_the_codes_unknown(tmp_path: Path) -> None:
    made = small(tmp_path)
    assert {code: sum(each) for code, each in told(made).codes().items()} == {"RM602": 2}
    for each in (tmp_path / "lake/s/p_quarantine").glob("*.parquet"):
        each.unlink()
    found = told(made)
    assert {code: sum(each) for code, each in found.codes().items()} == {"": 2}
    assert "p_quarantine" in found.bad.problem


def test_without_a_table_there_is_a_section_that_says_so(tmp_path: Path) -> None:
    made = small(tmp_path)
    known = Answering(made.facts(), failing={"q": TopicMissing("no topic q")})
    text = page(read_report(made.config, kafka=known))
    assert "No commit of it was found." in text
    assert data_of(text)[1]["records"] == []


def test_a_catalog_is_refused_as_history_does(tmp_path: Path) -> None:
    config = configured(tmp_path, warehouse={"catalog": "main"}, p="t")
    with pytest.raises(ConfigError):
        read_report(config)
