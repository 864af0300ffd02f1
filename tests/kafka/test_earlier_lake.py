"""A lake that commit f7556ba wrote is read, run on and verified; see tests/fixtures/f7556ba.

``found`` is what the commands say about the lake before anything is written; it is compared with
what those of f7556ba said (``written.json``). ``continued`` is the lake after this version has
gone on with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.operate.sql import query
from rivermouth.protocol.commits import entry_of
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import from_json, to_json
from rivermouth.protocol.offsets import Position
from rivermouth.run.report import Silent
from rivermouth.run.run import Run
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.folder.offsets import FolderOffsets
from tests.archives import unpack
from tests.faults.checker.first_format import first_format
from tests.lake import Heard, Lake
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

FIXTURE = Path(__file__).parents[1] / "fixtures" / "f7556ba"
WRITTEN: Mapping[str, Any] = json.loads((FIXTURE / "written.json").read_text("utf-8"))
TABLES = {
    "bids": "bronze.bids",
    "orders": "silver.orders",
    "payments": "silver.payments",
    "events": "bronze.events",
}
QUARANTINES = ("bronze.bids_quarantine", "silver.orders_quarantine")
PATIENT = {"broker.session.timeout.ms": "30000"}


@dataclass(frozen=True)
class Found:
    """What the commands said about the lake as it was unpacked, and what they wrote: nothing.

    ``quarantined`` counts all rows of the quarantine tables, effective or not.
    """

    status: Mapping[str, Any]
    verify: Mapping[str, Any]
    sql: Mapping[str, Any]
    quarantined: Mapping[str, int]
    entries: Mapping[str, Sequence[str]]
    files_before: Sequence[str]
    files_after: Sequence[str]


@dataclass(frozen=True)
class Continued:
    """What this version did with the lake, step by step, and what the commands say then."""

    run: Heard
    accepted: Position
    rerun: Heard
    status: Mapping[str, Any]
    verify: Mapping[str, Any]
    entries: Mapping[str, Sequence[str]]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The lake unpacked in a folder of its own, and its broker on a port of its own."""
    folder = tmp_path_factory.mktemp("earlier")
    unpack(FIXTURE / "lake.tar.xz", folder)
    with (
        Broker(folder / "broker", settings=PATIENT) as broker,
        pytest.MonkeyPatch.context() as environ,
    ):
        lake = Lake(folder, broker.bootstrap_servers)
        environ.setenv("KAFKA_BOOTSTRAP", lake.servers)
        shutil.copy(FIXTURE / "lake.yml", lake.file)
        shutil.copy(FIXTURE / "readme.yml", folder)
        yield lake


@pytest.fixture(scope="module")
def found(lake: Lake) -> Found:
    before = files(lake)
    config = load(lake.file)
    return Found(
        status=by_name(answer(lake, "status")["pipelines"]),
        verify=by_name(answer(lake, "verify", code=3)["pipelines"]),
        sql={each: query(config, each).as_dicts() for each in WRITTEN["sql"]},
        quarantined={each: len(lake.rows(each)) for each in QUARANTINES},
        entries=entries(lake),
        files_before=before,
        files_after=files(lake),
    )


@pytest.fixture(scope="module")
def continued(lake: Lake, found: Found, rivermouth_spark: SparkSession) -> Continued:
    """The lake after a run, the answer to a RESTORE and another run.

    ``bids`` and ``orders`` run with the configuration of the README as it was.
    """
    assert found.entries.keys() == TABLES.keys()
    heard = Heard()
    readme = Run(load(lake.folder / "readme.yml"), rivermouth_spark, lake.scratch, continuous=False)
    readme.pipelines(("bids", "orders"), heard, threading.Event())
    lake.run(rivermouth_spark, "payments", "events", heard=heard)
    run = Run(load(lake.file), rivermouth_spark, lake.scratch, continuous=False)
    accepted = run.resume("payments", "restore", Silent())
    rerun = lake.run(rivermouth_spark, "payments")
    return Continued(
        run=heard,
        accepted=accepted,
        rerun=rerun,
        status=by_name(answer(lake, "status")["pipelines"]),
        verify=answer(lake, "verify"),
        entries=entries(lake),
    )


def answer(lake: Lake, *words: str, code: int = 0) -> Any:
    """What ``rivermouth WORD CONFIG WORDS…`` says as JSON; it must end with ``code``."""
    name, *rest = words
    command = [sys.executable, "-m", "rivermouth", name, str(lake.file), *rest, "--json"]
    done = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def by_name(pipelines: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {each["name"]: each for each in pipelines}


def files(lake: Lake) -> list[str]:
    """All files but the records of proofs, which ``verify`` writes."""
    proofs = lake.warehouse / "rivermouth" / "proofs"
    found = lake.warehouse.rglob("*")
    return sorted(str(each) for each in found if proofs not in (each, *each.parents))


def entries(lake: Lake) -> dict[str, list[str]]:
    """The entries of each pipeline, word for word, as the log of its table has them."""
    return {
        name: [
            str(each.user_metadata)
            for each in FolderLog(lake.path(table)).commits()
            if entry_of(each, name) is not None
        ]
        for name, table in TABLES.items()
    }


def without(facts: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if name not in names}


def parsed(texts: Sequence[str]) -> list[Entry]:
    read = [from_json(each) for each in texts]
    return [each for each in read if each is not None]


def test_the_lake_holds_every_kind_of_entry() -> None:
    kept = [json.loads(each) for texts in WRITTEN["entries"].values() for each in texts]
    assert len(kept) == 19
    assert sum("rows" not in each for each in kept) == 4
    assert [each["lost"] for each in kept if "lost" in each] == [[["events", 0, 3, 5]]]
    accepted = {"kind": "restore", "version": 4, "standing": 2}
    assert [each["accepts"] for each in kept if "accepts" in each] == [accepted]
    assert [each["pipeline"] for each in kept if len(each["position"].get("bids", ())) == 2] == [
        "bids"
    ] * 3


def test_status_shows_states_sequences_and_positions_as_they_were(found: Found) -> None:
    shown = {
        name: (it["state"], it["sequence"], it["position"]) for name, it in found.status.items()
    }
    assert shown == {
        "bids": ("BEHIND", 7, {"bids": {"0": 9, "1": 3}}),
        "orders": ("BEHIND", 4, {"orders": {"0": 12}}),
        "payments": ("BLOCKED", 3, {"payments": {"0": 5}}),
        "events": ("BEHIND", 5, {"events": {"0": 8}}),
    }
    for before in WRITTEN["status"]:
        now = found.status[before["name"]]
        since = now.keys() - before.keys()
        assert without(now, "reason", "lag", *since) == without(before, "reason", "lag")
        assert without(now["lag"], "seconds") == without(before["lag"], "seconds")
        assert (now["reason"] or "")[:5] == (before["reason"] or "")[:5]
    assert "RM411" in found.status["payments"]["reason"]


@pytest.mark.parametrize("question", WRITTEN["sql"])
def test_sql_gives_the_same_answer(question: str, found: Found) -> None:
    assert WRITTEN["sql"][question]
    assert found.sql[question] == WRITTEN["sql"][question]


def test_quarantine_shows_only_the_rows_of_effective_entries(found: Found) -> None:
    counts = {each: (found.quarantined[each], shown(found, each)) for each in QUARANTINES}
    assert counts == {"bronze.bids_quarantine": (2, 1), "silver.orders_quarantine": (3, 2)}


def test_the_note_of_a_start_that_halted_is_found(lake: Lake, found: Found) -> None:
    assert found.status["payments"]["state"] == "BLOCKED"
    offsets = FolderOffsets(lake.path("rivermouth.offsets"))
    noted = {name: offsets.rollback_noted(name) for name in TABLES}
    assert noted == {"bids": 4, "orders": 0, "payments": 4, "events": 0}


def test_verify_finds_what_it_found(found: Found) -> None:
    for before in WRITTEN["verify"]:
        now = found.verify[before["name"]]
        assert now["wrongly_quarantined"] == 0
        since = {"problems", "unchecked", *(now.keys() - before.keys())}
        assert without(now, *since) == without(before, "problems", "unchecked")
        assert len(now["problems"]) == len(before["problems"])
    flawed = {name: it["problems"] for name, it in found.verify.items() if not it["ok"]}
    assert flawed.keys() == {"bids", "orders", "payments"}


def test_entries_are_read_whole_and_nothing_is_written_by_looking(found: Found) -> None:
    assert found.entries == WRITTEN["entries"]
    for texts in found.entries.values():
        again = [json.loads(to_json(each)) for each in parsed(texts)]
        assert [first_format(each) for each in again] == [json.loads(each) for each in texts]
    assert found.files_after == found.files_before


def test_the_configuration_of_the_readme_names_the_same_pipelines(lake: Lake) -> None:
    readme, config = load(lake.folder / "readme.yml"), load(lake.file)
    for name, pipeline in readme.pipelines.items():
        newest = parsed(WRITTEN["entries"][name])[-1]
        assert pipeline.identity == newest.config == config.pipelines[name].identity
        assert pipeline.columns == config.pipelines[name].columns
    assert [*readme.pipelines] == ["bids", "orders"]


def test_a_run_projects_what_a_killed_driver_left_and_reads_on(
    lake: Lake, continued: Continued
) -> None:
    opens = {each.pipeline: (each.sequence, each.projected) for each in continued.run.opens}
    assert opens == {"bids": (7, 1), "orders": (4, 1), "events": (5, 0)}
    ends = {each.pipeline: each for each in continued.run.ends}
    halted = ends.pop("payments").error
    assert halted is not None
    assert (halted.code, halted.exit_code) == ("RM411", 3)
    assert {name: it.error for name, it in ends.items()} == dict.fromkeys(ends)
    counts = {name: (it.applied, it.quarantined, it.sequence) for name, it in ends.items()}
    assert counts == {"bids": (2, 1, 8), "orders": (2, 1, 5), "events": (1, 0, 7)}
    projected = "SELECT pipeline, sequence, applied, quarantined FROM rivermouth.offsets"
    where = "(pipeline = 'bids' AND sequence = 7) OR (pipeline = 'orders' AND sequence = 4)"
    rows = answer(lake, "sql", f"{projected} WHERE {where} ORDER BY pipeline")
    assert [[*each.values()] for each in rows] == [
        ["bids", 7, 1, 0],
        ["bids", 7, 1, 0],
        ["orders", 4, 2, 1],
    ]


def test_a_restore_of_before_is_accepted_and_its_records_are_read_again(
    continued: Continued,
) -> None:
    assert continued.accepted.as_nested() == {"payments": {"0": 3}}
    [end] = continued.rerun.ends
    assert (end.error, end.applied, end.sequence) == (None, 3, 5)
    resumed = parsed(continued.entries["payments"])[3]
    assert resumed.accepts is not None
    assert vars(resumed.accepts) == {"kind": "restore", "version": 4, "standing": 2}


def test_afterwards_verify_proves_every_record_and_status_is_ok(
    lake: Lake, continued: Continued
) -> None:
    assert continued.verify["ok"] is True
    facts = ("entries", "records", "quarantined", "lost", "missing", "duplicated")
    proved = {
        each["name"]: [each[fact] for fact in facts] for each in continued.verify["pipelines"]
    }
    assert proved == {
        "bids": [7, 15, 2, 0, 0, 0],
        "orders": [5, 15, 3, 0, 0, 0],
        "payments": [4, 6, 0, 0, 0, 0],
        "events": [7, 4, 0, 2, 0, 0],
    }
    shown = {name: (it["state"], it["sequence"]) for name, it in continued.status.items()}
    assert shown == {
        "bids": ("OK", 8),
        "orders": ("OK", 5),
        "payments": ("OK", 5),
        "events": ("OK", 7),
    }
    keys = {
        name: [row["order_id"] for row in ordered(lake, name)] for name in ("orders", "payments")
    }
    assert keys == {"orders": [0, 1, 4, 6], "payments": [0, 1, 4]}


def test_the_entries_of_before_stay_and_new_ones_follow_on_them(continued: Continued) -> None:
    for name, before in WRITTEN["entries"].items():
        texts = continued.entries[name]
        assert texts[: len(before)] == before
        kept = parsed(texts)
        assert [each.sequence for each in kept] == [*range(1, len(kept) + 1)]
        assert len({(each.cluster, each.table, each.topics[name]) for each in kept}) == 1
        assert all(each.config == kept[0].config for each in kept)
    heartbeat = parsed(continued.entries["events"])[5]
    assert [(each.from_offset, each.span) for each in heartbeat.ranges] == [(8, 0)]


def shown(found: Found, table: str) -> int:
    """How many rows of a table ``rivermouth sql`` shows."""
    [question] = [each for each in found.sql if f"FROM {table} " in each]
    return len(found.sql[question])


def ordered(lake: Lake, pipeline: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = answer(lake, "sql", f"SELECT * FROM {TABLES[pipeline]} ORDER BY 1")
    return rows
