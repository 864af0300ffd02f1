"""The history of a table, and where its pipeline stood: over logs with what others did in them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config
from rivermouth.errors import LedgerBroken, RangesRefused
from rivermouth.operate.history import History, history
from rivermouth.operate.standing import Standing, Standings
from rivermouth.protocol.commits import app_id
from rivermouth.protocol.entry import Accepted, Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.run.histories import history_csv, history_table, standing_table
from tests.builders import TOPIC, entry_after, span
from tests.unit.operate.doubles import configured

pytestmark = pytest.mark.unit

PLACE = TopicPartition(TOPIC, 0)
SECOND = 1_000
BEGAN_MS = 1_790_000_000_000


class Table:
    """A log that is written commit by commit, one a second, for the pipeline ``p``."""

    def __init__(self, folder: Path) -> None:
        self.config: Config = configured(folder, p=TOPIC)
        self._log = folder / "lake" / "s" / "p" / "_delta_log"
        self._log.mkdir(parents=True)
        self.entry: Entry | None = None
        self.version = -1
        self.did("CREATE TABLE")

    def did(self, operation: str, entry: Entry | None = None, **parameters: object) -> Table:
        self.version += 1
        info: dict[str, Any] = {
            "timestamp": BEGAN_MS + self.version * SECOND,
            "operation": operation,
            "operationParameters": parameters,
            "engineInfo": "rivermouth" if entry else "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
        }
        actions: list[dict[str, Any]] = [{"commitInfo": info}]
        if entry is not None:
            info["userMetadata"] = to_json(entry)
            actions += [{"txn": {"appId": app_id(entry.pipeline), "version": entry.sequence}}]
        if self.version == 0:
            actions += [
                {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
                {
                    "metaData": {
                        "id": "t",
                        "format": {"provider": "parquet"},
                        "schemaString": '{"type":"struct","fields":[]}',
                        "partitionColumns": [],
                        "configuration": {},
                    }
                },
            ]
        text = "".join(json.dumps(each) + "\n" for each in actions)
        (self._log / f"{self.version:020d}.json").write_text(text, encoding="utf-8")
        return self

    def read(self, *ranges: OffsetRange, pipeline: str = "p", **changed: Any) -> Table:
        made = entry_after(self.entry, *ranges, pipeline=pipeline)
        entry = replace(made, **changed)
        if pipeline == "p":
            self.entry = entry
        return self.did("WRITE", entry)

    def restored(self, version: int, entry: Entry | None) -> Table:
        """An operator goes back to a version, after which this entry is the newest in effect."""
        self.did("RESTORE", version=version)
        sequence = self.entry.sequence if self.entry else 0
        accepts = Accepted("restore", self.version, entry.sequence if entry else 0)
        back = entry_after(entry, pipeline="p")
        self.entry = replace(
            back, sequence=sequence + 1, commit=f"back-{self.version}", accepts=accepts
        )
        return self.did("WRITE", self.entry)

    def history(self, **how: Any) -> History:
        return history(self.config, "p", **how)

    def at(self) -> Standings:
        return Standings(self.config, "p")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def told(found: History) -> list[tuple[int, str, bool | None]]:
    return [(each.record.version, each.what, each.stands) for each in found.events]


def test_a_history_tells_what_each_commit_was_for(table: Table) -> None:
    table.read(span(0, 0)).read(span(0, 10)).did("OPTIMIZE").read()
    table.did("ADD COLUMNS", columns='[{"column":{"name":"n"}}]').read(span(10, 12), pipeline="q")
    lost = span(10, 15)
    table.read(lost, lost=(lost,), rows=(RowCounts(0, 0),))
    assert told(table.history()) == [
        (7, "loss recorded", True),
        (6, "WRITE of q", True),
        (5, 'ADD COLUMNS: [{"column":{"name":"n"}}]', True),
        (4, "heartbeat", True),
        (3, "OPTIMIZE", True),
        (2, "batch", True),
        (1, "new partitions", True),
        (0, "CREATE TABLE", True),
    ]


def test_it_ends_where_it_is_asked_to(table: Table) -> None:
    for each in range(9):
        table.read(span(each, each + 1))
    assert [each.record.version for each in table.history(most=3).events] == [9, 8, 7]
    assert [each.record.version for each in table.history(since_ms=BEGAN_MS + 7_500).events] == [
        9,
        8,
    ]
    assert len(table.history(most=None).events) == 10


def test_what_a_restore_took_back_does_not_stand_and_what_it_left_does(table: Table) -> None:
    table.read(span(0, 10))
    kept = table.entry
    table.read(span(10, 20)).read(span(20, 30)).restored(1, kept).read(span(10, 40))
    assert [stands for _, _, stands in told(table.history())] == [
        *(True, True, True),
        *(False, False),
        *(True, True),
    ]
    assert told(table.history())[1][1] == "restore accepted"


def test_a_restore_that_was_itself_taken_back_takes_nothing_back(table: Table) -> None:
    table.read(span(0, 10)).read(span(10, 20))
    table.did("RESTORE", version=1).did("RESTORE", version=2)
    assert [(version, stands) for version, _, stands in told(table.history())] == [
        *((4, True), (3, False), (2, True), (1, True), (0, True)),
    ]


def test_nobody_can_tell_what_a_restore_to_a_time_left(table: Table) -> None:
    table.read(span(0, 10)).did("RESTORE", timestamp="2026-11-01").did("OPTIMIZE")
    assert [stands for _, _, stands in told(table.history())] == [True, True, None, None]


def test_nothing_before_a_truncate_stands(table: Table) -> None:
    table.read(span(0, 10)).did("TRUNCATE").did("OPTIMIZE")
    assert [stands for _, _, stands in told(table.history())] == [True, True, False, False]
    assert table.at().at_version(3).sequence == 0
    assert table.at().at_version(1).sequence == 1


def test_a_table_for_people_is_80_columns_wide_and_explains_its_marks(table: Table) -> None:
    table.read(span(0, 1_000_000), rows=(RowCounts(999_000, 900, 100),)).did("TRUNCATE")
    shown = history_table(table.history())
    assert max(map(len, shown.splitlines())) <= 80
    assert "batch (-)" in shown
    assert "took its rows back" in shown
    assert "999,000" in shown
    assert "Delta-Lake" not in shown


def test_csv_has_a_line_for_each_commit_and_json_its_ranges(table: Table) -> None:
    table.read(span(0, 7), rows=(RowCounts(4, 2, 1),))
    lines = history_csv(table.history()).splitlines()
    assert lines[0].startswith("version,committed_at,sequence,what,stands,offsets")
    assert lines[1] == "1,2026-09-21T14:13:21Z,1,batch,True,7,4,2,1,rivermouth,p-commit-1"
    assert lines[2].startswith("0,2026-09-21T14:13:20Z,,CREATE TABLE,True,,,,,Apache")
    newest = table.history().as_dict()["commits"][0]
    assert newest["ranges"] == [
        {"topic": TOPIC, "partition": 0, "from_offset": 0, "until_offset": 7}
    ]


def positions(found: Standing) -> int | None:
    return found.position.get(PLACE)


def test_a_version_a_time_and_an_offset_find_where_it_stood(table: Table) -> None:
    for each in range(0, 100, 10):
        table.read(span(each, each + 10)).did("OPTIMIZE")
    stood = table.at()
    assert [positions(stood.at_version(each)) for each in (0, 1, 2, 3, 20)] == [
        *(None, 10, 10, 20, 100),
    ]
    found = stood.at_time(BEGAN_MS + 3 * SECOND + 999)
    assert (found.version, positions(found)) == (3, 20)
    assert [stood.at_offset(PLACE, each).version for each in (0, 9, 10, 55, 99)] == [
        *(1, 1, 3, 11, 19),
    ]
    assert found.sql.endswith("/lake/s/p` VERSION AS OF 3")
    assert "next offset" in standing_table(found)
    assert stood.at_version(5).since(found) == {PLACE: (20, 30)}
    assert standing_table(stood.at_version(4), found).endswith("no position differs")


def test_an_offset_that_was_read_twice_is_found_at_one_of_these(table: Table) -> None:
    table.read(span(0, 10))
    kept = table.entry
    table.read(span(10, 20)).read(span(20, 30)).restored(1, kept).read(span(10, 15))
    table.read(span(15, 40))
    stood = table.at()
    found = [stood.at_offset(PLACE, each).version for each in (5, 12, 17, 22, 39)]
    assert found[0] == 1
    assert found[1] in {2, 6}
    assert {*found[2:4]} <= {2, 3, 7}
    assert found[4] == 7
    assert positions(stood.at_version(4)) == 10
    assert positions(stood.at_version(5)) == 10


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda stood: stood.at_version(3), "versions 0 to 1"),
        (lambda stood: stood.at_time(BEGAN_MS - 1), "the first commit that the log holds"),
        (lambda stood: stood.at_offset(PLACE, 10), "an offset below 10"),
        (lambda stood: stood.at_offset(TopicPartition("x", 0), 0), "no position"),
    ],
)
def test_what_the_log_does_not_hold_is_refused_with_what_it_holds(
    table: Table, ask: Any, said: str
) -> None:
    table.read(span(0, 10))
    with pytest.raises(RangesRefused, match=said):
        ask(table.at())


def test_without_a_table_there_is_no_history(tmp_path: Path) -> None:
    config = configured(tmp_path, p=TOPIC)
    assert history_table(history(config, "p")) == "p: no commit of s.p"
    with pytest.raises(RangesRefused, match="there is no table yet"):
        Standings(config, "p")


def test_a_torn_commit_is_named(table: Table) -> None:
    table.read(span(0, 10))
    (table.config.path.parent / "lake/s/p/_delta_log" / f"{1:020d}.json").write_text("{")
    with pytest.raises(LedgerBroken, match=r"00001\.json"):
        table.history()
