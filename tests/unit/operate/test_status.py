"""The status of a pipeline from its ledger and the facts of Kafka; no broker needed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.config import Config, Pipeline, Start, Topics, load
from rivermouth.errors import KafkaUnreachable, TopicMissing
from rivermouth.kafka.facts import AskTopic
from rivermouth.operate.pace import State
from rivermouth.operate.status import MirrorStatus, PipelineStatus, Status, status
from rivermouth.protocol.commits import Recorded, app_id
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import (
    LogEnd,
    OffsetRange,
    Position,
    TopicPartition,
    Watermarks,
)
from rivermouth.run.tables import status_table as render
from rivermouth.warehouse.lake.offsets import ledger_of
from rivermouth.warehouse.lake.retry_notes import Retrying, RetryNotes
from rivermouth.warehouse.ports import LedgerLog, LedgerStore
from tests.doubles import MemoryGroups
from tests.folders import folder_of_config, lake_of
from tests.unit.operate.doubles import Answering, configured

pytestmark = pytest.mark.unit

STAMP = datetime(2026, 1, 1, tzinfo=timezone.utc)
STAMP_MS = int(STAMP.timestamp() * 1000)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
KAFKA = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
AWAY = KafkaUnreachable("no broker answers")
ENTRY = Entry(
    pipeline="p",
    sequence=1,
    commit="c1",
    cluster="K",
    table="",
    topics={"t": "T"},
    ranges=(OffsetRange(T0, 0, 10), OffsetRange(T1, 0, 5)),
    position=Position({T0: 10, T1: 5}),
)


def facts(low: int = 0, high: int = 10, topic: str = "T", cluster: str = "K") -> KafkaFacts:
    return KafkaFacts(cluster, {"t": topic}, {T0: Watermarks(low, high), T1: Watermarks(0, 5)})


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configured(tmp_path, p="t")


def commit(config: Config, entry: Entry | None, *, rows: int = 1, mode: Any = "append") -> Path:
    """Commit rows to the pipeline's table, with an entry or without."""
    pipeline = config.pipelines[entry.pipeline if entry else "p"]
    path = pipeline.target.table.path(folder_of_config(config))
    kafka = [{"topic": "t", "partition": 0, "offset": n, "timestamp": STAMP} for n in range(rows)]
    ids = pa.array([*range(rows)], pa.int64())
    table = pa.table({"id": ids, "_kafka": pa.array(kafka, KAFKA)})
    properties = None
    if not DeltaTable.is_deltatable(str(path)):
        DeltaTable.create(str(path), table.schema)
    if entry is not None:
        table_id = str(DeltaTable(str(path)).metadata().id)
        whole = replace(entry, table=table_id, config=pipeline.identity)
        properties = CommitProperties(
            app_transactions=[Transaction(app_id(entry.pipeline), entry.sequence)],
            custom_metadata={"userMetadata": to_json(whole)},
        )
    write_deltalake(str(path), table, mode=mode, commit_properties=properties)
    return path


def only(config: Config, ask: AskTopic, now: float = STAMP.timestamp()) -> PipelineStatus:
    [found] = status(config, ask, lambda: now).pipelines
    return found


NEW: dict[str, Any] = {
    "name": "p",
    "state": "NEW",
    "reason": None,
    "sequence": None,
    "offsets_table_sequence": None,
    "table": "s.p",
    "table_version": None,
    "position": None,
    "accepted": [],
    "proof": None,
    "retrying": None,
    "mirror": None,
    "landing": {"by": "files", "reason": None},
    "files": None,
    "lag": {"messages": 15, "seconds": None, "held_back": 0, "caught_up_in_seconds": None},
    "waiting": {
        "since_ms": STAMP_MS,
        "kept": {
            "outlook": "by age",
            "basis": "the record's timestamp plus retention.ms 604,800,000; Kafka deletes whole "
            "segments, so not before",
            "seconds": 604_800.0,
            "record_ms": STAMP_MS,
        },
    },
    "pace": {"offsets_per_second": None, "quarantined_share": None, "commits": []},
}


def test_a_pipeline_without_a_table_is_new_and_knows_how_much_waits(config: Config) -> None:
    assert only(config, Answering(facts(), stamp_ms=STAMP_MS)).as_dict() == NEW


def test_a_table_without_an_entry_is_new(config: Config) -> None:
    commit(config, None)
    found = only(config, Answering(facts()))
    assert (found.state, found.sequence, found.table_version) == (State.NEW, None, 1)


def test_a_pipeline_that_is_caught_up_has_no_lag(config: Config) -> None:
    commit(config, ENTRY)
    found = only(config, Answering(facts()), STAMP.timestamp() + 60).as_dict()
    assert found["files"].pop("size") > 0
    [[at_ms, offsets, behind_ms]] = found.pop("pace")["commits"]
    assert (offsets, at_ms - behind_ms) == (15, STAMP_MS)
    assert found == {
        **{name: each for name, each in NEW.items() if name != "pace"},
        "state": "OK",
        "files": {"files": 1, "vectors": 0, "deleted": 0.0, "compacted": None},
        "sequence": 1,
        "table_version": 1,
        "position": {"t": {"0": 10, "1": 5}},
        "lag": {"messages": 0, "seconds": 0.0, "held_back": 0, "caught_up_in_seconds": None},
        "waiting": None,
    }


@pytest.mark.parametrize(("later_s", "seconds"), [(60, 60.0), (-60, 0.0)])
def test_lag_in_seconds_is_the_age_of_the_newest_committed_record(
    config: Config, later_s: float, seconds: float
) -> None:
    commit(config, ENTRY)
    found = only(config, Answering(facts(high=17)), STAMP.timestamp() + later_s)
    assert (found.state, found.lag_messages, found.lag_seconds) == (State.CATCHING_UP, 7, seconds)


def test_an_entry_without_rows_dates_from_its_commit(config: Config) -> None:
    path = commit(config, ENTRY, rows=0)
    made, _ = DeltaTable(str(path)).history()
    now = made["timestamp"] / 1000 + 5
    assert only(config, Answering(facts(high=17)), now).lag_seconds == pytest.approx(5)


def test_the_entry_is_found_behind_commits_of_others(config: Config) -> None:
    commit(config, ENTRY)
    for _ in range(3):
        commit(config, None)
    found = only(config, Answering(facts()))
    assert (found.state, found.sequence, found.table_version) == (State.OK, 1, 4)


def test_partitions_never_seen_count_from_their_start(config: Config) -> None:
    commit(config, replace(ENTRY, ranges=ENTRY.ranges[:1], position=Position({T0: 10})))
    assert only(config, Answering(facts())).lag_messages == 5


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (facts(topic="other"), "RM404"),
        (facts(cluster="other"), "RM405"),
        (facts(low=11, high=20), "RM406"),
        (facts(high=9), "RM416"),
    ],
)
def test_what_would_halt_a_run_blocks_and_says_why(
    config: Config, answer: KafkaFacts, code: str
) -> None:
    commit(config, ENTRY)
    found = only(config, Answering(answer))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith(code)
    assert (found.sequence, found.lag_messages, found.lag_seconds) == (1, None, None)


def clean_up(path: Path, versions: Iterable[int]) -> None:
    """Log clean-up takes these versions."""
    DeltaTable(str(path)).create_checkpoint()
    for each in versions:
        (path / "_delta_log" / f"{each:020d}.json").unlink()


def project(config: Config, entry: Entry) -> None:
    """The offsets table has the entry, at version 1."""
    counted = Recorded(1, 0, entry).counted((RowCounts(0, 0),) * len(entry.ranges))
    ledger_of(lake_of(config), config.pipelines["p"]).offsets.project([counted])


def restored(config: Config) -> None:
    DeltaTable(str(commit(config, ENTRY))).restore(0)


def cleaned_up(config: Config) -> None:
    path = commit(config, ENTRY)
    commit(config, None)
    clean_up(path, [0, 1])


def dropped(config: Config) -> None:
    path = commit(config, ENTRY)
    project(config, ENTRY)
    shutil.rmtree(path)


def dropped_and_created_again(config: Config) -> None:
    dropped(config)
    commit(config, None)


def replaced(config: Config) -> None:
    path = commit(config, ENTRY)
    entry = (path / "_delta_log" / f"{1:020d}.json").read_text("utf-8")
    shutil.rmtree(path)
    commit(config, None)
    (path / "_delta_log" / f"{1:020d}.json").write_text(entry, "utf-8")


def cut_off(config: Config) -> None:
    path = commit(config, ENTRY)
    (path / "_delta_log" / f"{2:020d}.json").write_text('{"add":{"pa')


def without_a_commit_of_long_ago(config: Config) -> None:
    commit(config, None)
    path = commit(config, None)
    commit(config, ENTRY)
    commit(config, replace(ENTRY, sequence=2, commit="c2", base=3, ranges=()))
    project(config, ENTRY)
    (path / "_delta_log" / f"{1:020d}.json").unlink()


def unreadable(config: Config) -> None:
    path = commit(config, ENTRY)
    (path / "_delta_log" / f"{2:020d}.json").mkdir()


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        (restored, State.BLOCKED, "RM411"),
        (cleaned_up, State.BLOCKED, "RM412"),
        (dropped, State.BLOCKED, "RM415"),
        (dropped_and_created_again, State.BLOCKED, "RM415"),
        (replaced, State.BLOCKED, "RM409"),
        (cut_off, State.BLOCKED, "RM410"),
        (without_a_commit_of_long_ago, State.BLOCKED, "expected version 1; found version 2"),
        (unreadable, State.UNKNOWN, "RM801"),
    ],
)
def test_what_happened_to_a_table_is_said_as_a_run_says_it(
    config: Config, change: Callable[[Config], None], state: State, reason: str
) -> None:
    change(config)
    found = only(config, Answering(facts()))
    assert found.state is state
    assert reason in (found.reason or "")
    if change is cleaned_up:
        assert (found.sequence, found.position) == (1, None), "it is not new"


def test_a_changed_setting_blocks(config: Config) -> None:
    commit(config, ENTRY)
    upsert = {"source": {"topics": ["t"]}, "target": {"mode": "upsert", "keys": ["id"]}}
    found = only(configured(config.path.parent, p=upsert), Answering(facts()))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith("RM408")


def test_an_entry_that_clean_up_took_is_recovered_from_the_offsets_table(config: Config) -> None:
    path = commit(config, ENTRY)
    project(config, ENTRY)
    commit(config, None)
    clean_up(path, [0, 1])
    found = only(config, Answering(facts()))
    assert (found.state, found.sequence) == (State.OK, 1)
    assert found.position == {"t": {"0": 10, "1": 5}}


def test_it_tells_how_far_the_offsets_table_is(config: Config) -> None:
    commit(config, ENTRY)
    behind = only(config, Answering(facts())).as_dict()
    assert (behind["sequence"], behind["offsets_table_sequence"]) == (1, None)
    project(config, ENTRY)
    fresh = only(config, Answering(facts())).as_dict()
    assert (fresh["sequence"], fresh["offsets_table_sequence"]) == (1, 1)


def test_a_log_truncated_by_an_unclean_election_blocks(config: Config) -> None:
    commit(config, replace(ENTRY, epochs={T0: 3}))
    grown = replace(facts(high=20), ends={T0: LogEnd(20, 4)})
    assert only(config, Answering(grown)).state is State.CATCHING_UP
    found = only(config, Answering(grown, truncated={T0: 8}))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith("RM416")


def test_without_a_broker_the_lag_is_unknown_and_the_position_is_not(config: Config) -> None:
    commit(config, ENTRY)
    found = only(config, Answering(facts(), failing={"t": AWAY}))
    assert found.state is State.UNKNOWN
    assert (found.reason or "").startswith("RM301")
    assert {*found.as_dict()["lag"].values()} == {None}
    assert found.position == {"t": {"0": 10, "1": 5}}


def test_what_halts_a_run_whatever_kafka_says_blocks_without_a_broker(config: Config) -> None:
    restored(config)
    found = only(config, Answering(facts(), failing={"t": AWAY}))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith("RM411")


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("socket.timeout.ms", "soon", "RM303"),
        ("sasl.password", "${secret:kafka/password}", "RM207 kafka/password"),
    ],
)
def test_a_broker_that_nobody_can_connect_to_leaves_only_kafka_unknown(
    tmp_path: Path, option: str, value: str, reason: str
) -> None:
    file = configured(tmp_path, p="t", q="u").path
    servers = '"bootstrap.servers": "localhost:1"'
    text = file.read_text(encoding="utf-8").replace(servers, f'{servers}, "{option}": "{value}"')
    file.write_text(text, encoding="utf-8")
    found = status(load(file)).pipelines
    assert [each.state for each in found] == [State.UNKNOWN, State.UNKNOWN]
    assert all(reason in (each.reason or "") for each in found)


def test_a_missing_topic_hides_only_its_own_pipeline(tmp_path: Path) -> None:
    config = configured(tmp_path, p="t", q="gone")
    commit(config, ENTRY)
    missing = {"gone": TopicMissing("topic gone does not exist")}
    found = status(config, Answering(facts(), failing=missing), STAMP.timestamp).pipelines
    assert [each.state for each in found] == [State.OK, State.UNKNOWN]


def test_an_unreadable_table_hides_only_its_own_pipeline(tmp_path: Path) -> None:
    config = configured(tmp_path, p="t", q="t", r="t")
    commit(config, ENTRY)
    path = commit(config, replace(ENTRY, pipeline="q"))
    (path / "_delta_log" / f"{2:020d}.json").mkdir()
    found = status(config, Answering(facts()), STAMP.timestamp).pipelines
    assert [each.state for each in found] == [State.OK, State.UNKNOWN, State.NEW]
    assert (found[1].reason or "").startswith("RM801")


def test_a_defect_of_ours_hides_only_its_own_pipeline(tmp_path: Path) -> None:
    config = configured(tmp_path, p="t", q="t")
    commit(config, ENTRY)
    q = config.pipelines["q"]
    source = q.source.model_copy(update={"start": Start(STAMP)})
    pipelines = {**config.pipelines, "q": q.model_copy(update={"source": source})}
    config = config.model_copy(update={"pipelines": pipelines})
    defect = OverflowError("date value out of range")
    kafka = Answering(facts(), failing={"offsets_at": defect})
    found = status(config, kafka, STAMP.timestamp).pipelines
    assert [each.state for each in found] == [State.OK, State.UNKNOWN]
    why = f"RM900 q: an error that nobody foresaw; found {defect!r}"
    assert (found[1].reason or "").startswith(why)


def test_a_table_or_a_proof_that_nobody_foresaw_hides_only_its_own_pipeline(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path, p="t", q="t", r="t")

    class Unreadable:
        def __getattr__(self, name: str) -> Any:
            raise ZeroDivisionError(name)

    def proved(pipeline: Pipeline) -> None:
        if pipeline.name == "q":
            raise ZeroDivisionError("proof")

    def store(pipeline: Pipeline) -> LedgerStore:
        found = ledger_of(lake_of(config), pipeline)
        return replace(found, log=cast(LedgerLog, Unreadable())) if pipeline.name == "r" else found

    commit(config, ENTRY)
    commit(config, replace(ENTRY, pipeline="q"))
    asked = Answering(facts())
    found = status(config, asked, STAMP.timestamp, stores=store, proofs=proved).pipelines
    assert [each.state for each in found] == [State.OK, State.UNKNOWN, State.UNKNOWN]
    assert [(each.reason or "")[:7] for each in found[1:]] == ["RM900 q", "RM900 r"]
    assert found[1].position == {"t": {"0": 10, "1": 5}}


def test_kafka_is_asked_once_for_all_pipelines(tmp_path: Path) -> None:
    topics = [f"t{n}" for n in range(10)]
    marks = {TopicPartition(each, 0): Watermarks(0, 1) for each in topics}
    kafka = Answering(KafkaFacts("K", dict.fromkeys(topics, "T"), marks))
    config = configured(tmp_path, **{f"p{n}": f"t{n}" for n in range(10)})
    found = status(config, kafka).pipelines
    assert kafka.asked_facts == [topics]
    assert [each.lag_messages for each in found] == [1] * 10


def test_the_rendering_fits_and_says_unknown_as_a_dash(config: Config) -> None:
    commit(config, ENTRY)
    text = render(status(config, Answering(facts(high=9)), STAMP.timestamp))
    table, reason = text.rsplit("\n", 1)
    assert max(map(len, table.splitlines())) <= 80
    assert "BLOCKED" in table
    assert "-" in table
    assert "never" in table
    assert reason.startswith("p: RM416")


def test_a_pipeline_that_a_run_tries_again_says_so(config: Config) -> None:
    commit(config, ENTRY)
    at_ms = int(STAMP.timestamp() * 1000)
    RetryNotes(lake_of(config)).write("p", Retrying(at_ms - 180_000, at_ms, 12, "RM301 k: is away"))

    found = status(config, Answering(facts()), STAMP.timestamp)

    assert found.as_dict()["pipelines"][0]["retrying"] == {
        "since_ms": at_ms - 180_000,
        "at_ms": at_ms,
        "tries": 12,
        "reason": "RM301 k: is away",
    }
    said = "p: a run tried it again, 12 times, first 3 min ago, last just now: RM301 k: is away"
    assert said in render(found, STAMP.timestamp).replace("\n  ", " ")


def mirrored(config: Config, ask: AskTopic, groups: MemoryGroups) -> PipelineStatus:
    """The status of the one pipeline, which now writes its position into the group ``burrow``."""
    pipeline = config.pipelines["p"]
    source = pipeline.source.model_copy(update={"mirror_group": "burrow"})
    with_group = {"p": pipeline.model_copy(update={"source": source})}
    mirroring = config.model_copy(update={"pipelines": with_group})
    [found] = status(mirroring, ask, STAMP.timestamp, groups=groups).pipelines
    assert groups.closed
    return found


@pytest.mark.parametrize(
    ("held", "behind", "said"),
    [
        ({T0: 10, T1: 5}, 0, "group burrow: 0 offsets behind the ledger"),
        ({T0: 1, T1: 2}, 12, "group burrow: 12 offsets behind the ledger"),
        ({T0: 9, T1: 7}, 1, "1 offsets behind the ledger; 2 ahead: a run goes on, or"),
        ({T0: 9}, None, "not known how far it is behind the ledger: it has no offset of 1"),
    ],
)
def test_a_group_for_monitors_is_compared_with_the_ledger(
    config: Config, held: dict[TopicPartition, int], behind: int | None, said: str
) -> None:
    commit(config, ENTRY)
    found = mirrored(config, Answering(facts()), MemoryGroups({"burrow": held}))
    assert found.state is State.OK, "it decides nothing"
    mirror = found.as_dict()["mirror"]
    assert (mirror["group"], mirror["behind"]) == ("burrow", behind)
    text = render(Status([found]))
    assert said in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_a_group_of_which_nothing_is_told_has_the_reason(config: Config) -> None:
    groups = MemoryGroups(failing={"burrow": KafkaUnreachable("no broker answers", where="k:1")})
    new = mirrored(config, Answering(facts()), groups)
    assert new.mirror == MirrorStatus("burrow", None, "the ledger tells no position")
    commit(config, ENTRY)
    refused = mirrored(config, Answering(facts()), groups)
    assert refused.state is State.OK
    assert refused.mirror == MirrorStatus("burrow", None, str(groups.failing["burrow"]))


def test_a_group_of_which_nobody_foresaw_the_error_has_it_as_the_reason(config: Config) -> None:
    commit(config, ENTRY)
    groups = MemoryGroups(failing={"burrow": ZeroDivisionError("group")})
    found = mirrored(config, Answering(facts()), groups)
    assert found.state is State.OK
    assert found.mirror is not None
    assert (found.mirror.reason or "").startswith("RM900 group burrow: ")


def test_a_broker_that_is_away_is_not_asked_for_the_group(config: Config) -> None:
    commit(config, ENTRY)
    groups = MemoryGroups(failing={"burrow": AssertionError("it was asked")})
    found = mirrored(config, Answering(facts(), failing={"t": AWAY}), groups)
    assert found.mirror == MirrorStatus("burrow", None, str(AWAY))

    pipeline = config.pipelines["p"]
    source = pipeline.source.model_copy(update={"topics": Topics(pattern="t.*")})
    pipelines = {"p": pipeline.model_copy(update={"source": source})}
    by_pattern = config.model_copy(update={"pipelines": pipelines})
    found = mirrored(by_pattern, Answering(facts(), failing={"names": AWAY}), groups)
    assert found.mirror == MirrorStatus("burrow", None, str(AWAY))
