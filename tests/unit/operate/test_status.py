"""The status of a pipeline from its ledger and the facts of Kafka; no broker needed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.config import Config, Pipeline, Start, Topics, load
from rivermouth.errors import KafkaUnreachable, SourceError, TopicMissing
from rivermouth.kafka.facts import AskKafka
from rivermouth.operate.status import MirrorStatus, PipelineStatus, State, Status, status
from rivermouth.protocol.commits import Recorded, app_id
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import (
    Anchor,
    LogEnd,
    OffsetRange,
    Position,
    TopicPartition,
    Watermarks,
)
from rivermouth.run.tables import status_table as render
from rivermouth.warehouse.folder.offsets import folder_ledger
from rivermouth.warehouse.folder.retry_notes import Retrying, RetryNotes
from rivermouth.warehouse.ports import LedgerLog, LedgerStore
from tests.doubles import MemoryGroups

pytestmark = pytest.mark.unit

STAMP = datetime(2026, 1, 1, tzinfo=timezone.utc)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
KAFKA = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
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


@dataclass
class Answering:
    """A broker that answers the same always, or fails for some topics."""

    answer: KafkaFacts
    truncated: Mapping[TopicPartition, int] = field(default_factory=dict)
    failing: Mapping[str, SourceError] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        return dict.fromkeys(times)

    def names(self) -> frozenset[str]:
        return frozenset(self.answer.topics)

    def missing(self, topics: Iterable[str]) -> frozenset[str]:
        return frozenset(topics) - self.answer.topics.keys()

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        self.asked.append([*topics])
        for each in self.asked[-1]:
            if each in self.failing:
                raise self.failing[each]
        return self.answer

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        return {each: end for each, end in self.truncated.items() if each in anchors}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configured(tmp_path, p="t")


def configured(folder: Path, **topics: str) -> Config:
    pipelines = {
        name: {
            "source": {"topics": [topic], "format": "json"},
            "schema": "id BIGINT",
            "target": {"table": f"s.{name}"},
        }
        for name, topic in topics.items()
    }
    text = {
        "version": 1,
        "kafka": {"bootstrap.servers": "localhost:1"},
        "warehouse": "./lake",
        "pipelines": pipelines,
    }
    (folder / "rivermouth.yml").write_text(json.dumps(text), encoding="utf-8")
    return load(folder / "rivermouth.yml")


def commit(config: Config, entry: Entry | None, *, rows: int = 1, mode: Any = "append") -> Path:
    """Commit rows to the pipeline's table, with an entry or without."""
    pipeline = config.pipelines[entry.pipeline if entry else "p"]
    path = pipeline.target.table.path(config.folder)
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


def only(config: Config, ask: AskKafka, now: float = STAMP.timestamp()) -> PipelineStatus:
    [found] = status(config, ask, lambda: now).pipelines
    return found


def test_a_pipeline_without_a_table_is_new_and_knows_how_much_waits(config: Config) -> None:
    assert only(config, Answering(facts())).as_dict() == {
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
        "lag": {"messages": 15, "seconds": None, "held_back": 0},
    }


def test_a_table_without_an_entry_is_new(config: Config) -> None:
    commit(config, None)
    found = only(config, Answering(facts()))
    assert (found.state, found.sequence, found.table_version) == (State.NEW, None, 1)


def test_a_pipeline_that_is_caught_up_has_no_lag(config: Config) -> None:
    commit(config, ENTRY)
    assert only(config, Answering(facts()), STAMP.timestamp() + 60).as_dict() == {
        "name": "p",
        "state": "OK",
        "reason": None,
        "sequence": 1,
        "offsets_table_sequence": None,
        "table": "s.p",
        "table_version": 1,
        "position": {"t": {"0": 10, "1": 5}},
        "accepted": [],
        "proof": None,
        "retrying": None,
        "mirror": None,
        "landing": {"by": "files", "reason": None},
        "lag": {"messages": 0, "seconds": 0.0, "held_back": 0},
    }


def test_lag_in_seconds_is_the_age_of_the_newest_committed_record(config: Config) -> None:
    commit(config, ENTRY)
    found = only(config, Answering(facts(high=17)), STAMP.timestamp() + 60)
    assert (found.state, found.lag_messages, found.lag_seconds) == (State.BEHIND, 7, 60.0)


def test_lag_is_never_negative(config: Config) -> None:
    commit(config, ENTRY)
    found = only(config, Answering(facts(high=17)), STAMP.timestamp() - 60)
    assert found.lag_seconds == 0.0


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


def test_a_changed_setting_blocks(config: Config, tmp_path: Path) -> None:
    commit(config, ENTRY)
    text = config.path.read_text(encoding="utf-8")
    target = '"target": {"table": "s.p"}'
    assert target in text
    upsert = '"target": {"table": "s.p", "mode": "upsert", "keys": ["id"]}'
    config.path.write_text(text.replace(target, upsert), encoding="utf-8")
    found = only(load(config.path), Answering(facts()))
    assert (found.reason or "").startswith("RM408")


def test_a_restored_table_blocks(config: Config) -> None:
    path = commit(config, ENTRY)
    DeltaTable(str(path)).restore(0)
    assert (only(config, Answering(facts())).reason or "").startswith("RM411")


def clean_up(path: Path, versions: Iterable[int]) -> None:
    """Log clean-up takes these versions."""
    DeltaTable(str(path)).create_checkpoint()
    for each in versions:
        (path / "_delta_log" / f"{each:020d}.json").unlink()


def test_an_entry_that_clean_up_took_blocks_and_is_not_new(config: Config) -> None:
    path = commit(config, ENTRY)
    commit(config, None)
    clean_up(path, [0, 1])
    found = only(config, Answering(facts()))
    assert (found.state, found.sequence, found.position) == (State.BLOCKED, 1, None)
    assert (found.reason or "").startswith("RM412")


def project(config: Config, entry: Entry) -> None:
    """The offsets table has the entry, at version 1."""
    counted = Recorded(1, 0, entry).counted((RowCounts(0, 0),) * len(entry.ranges))
    folder_ledger(config.folder, config.pipelines["p"]).offsets.project([counted])


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


def test_a_table_that_was_dropped_blocks_as_long_as_the_offsets_table_is_there(
    config: Config,
) -> None:
    path = commit(config, ENTRY)
    project(config, ENTRY)
    shutil.rmtree(path)
    found = only(config, Answering(facts()))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith("RM415")
    commit(config, None)
    assert (only(config, Answering(facts())).reason or "").startswith("RM415")


def test_a_table_that_was_replaced_blocks(config: Config) -> None:
    path = commit(config, ENTRY)
    kept = (path / "_delta_log" / f"{1:020d}.json").read_text("utf-8")
    shutil.rmtree(path)
    commit(config, None)
    (path / "_delta_log" / f"{1:020d}.json").write_text(kept, "utf-8")
    assert (only(config, Answering(facts())).reason or "").startswith("RM409")


def test_a_log_truncated_by_an_unclean_election_blocks(config: Config) -> None:
    commit(config, replace(ENTRY, epochs={T0: 3}))
    grown = replace(facts(high=20), ends={T0: LogEnd(20, 4)})
    assert only(config, Answering(grown)).state is State.BEHIND
    found = only(config, Answering(grown, truncated={T0: 8}))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith("RM416")


def test_a_log_that_the_store_does_not_give_is_unknown(config: Config) -> None:
    path = commit(config, ENTRY)
    (path / "_delta_log" / f"{2:020d}.json").mkdir()
    found = only(config, Answering(facts()))
    assert found.state is State.UNKNOWN
    assert (found.reason or "").startswith("RM801")


def test_a_commit_that_is_missing_blocks_however_long_ago_it_was(config: Config) -> None:
    commit(config, None)
    path = commit(config, None)
    commit(config, ENTRY)
    commit(config, replace(ENTRY, sequence=2, commit="c2", base=3, ranges=()))
    project(config, ENTRY)
    (path / "_delta_log" / f"{1:020d}.json").unlink()
    found = only(config, Answering(facts()))
    assert found.state is State.BLOCKED
    assert "expected version 1; found version 2" in (found.reason or ""), "as a run says it"


def test_a_torn_commit_blocks(config: Config) -> None:
    path = commit(config, ENTRY)
    (path / "_delta_log" / f"{2:020d}.json").write_text('{"add":{"pa')
    found = only(config, Answering(facts()))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith("RM410")


def test_without_a_broker_the_lag_is_unknown_and_the_position_is_not(config: Config) -> None:
    commit(config, ENTRY)
    unreachable = KafkaUnreachable("no broker answers")
    found = only(config, Answering(facts(), failing={"t": unreachable}))
    assert found.state is State.UNKNOWN
    assert (found.reason or "").startswith("RM301")
    assert found.as_dict()["lag"] == {"messages": None, "seconds": None, "held_back": None}
    assert found.position == {"t": {"0": 10, "1": 5}}


def test_what_halts_a_run_whatever_kafka_says_blocks_without_a_broker(config: Config) -> None:
    path = commit(config, ENTRY)
    DeltaTable(str(path)).restore(0)
    unreachable = KafkaUnreachable("no broker answers")
    found = only(config, Answering(facts(), failing={"t": unreachable}))
    assert found.state is State.BLOCKED
    assert (found.reason or "").startswith("RM411")


def test_an_option_that_the_client_refuses_is_a_reason(config: Config) -> None:
    text = config.path.read_text("utf-8")
    bad = '"bootstrap.servers": "127.0.0.1:1", "socket.timeout.ms": "soon"'
    config.path.write_text(re.sub(r'"bootstrap.servers": "[^"]*"', bad, text), encoding="utf-8")
    [found] = status(load(config.path)).pipelines
    assert found.state is State.UNKNOWN
    assert (found.reason or "").startswith("RM303")


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


class Overflowing(Answering):
    """A broker whose client raises an error that nobody foresaw when it is asked for a time."""

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        raise OverflowError("date value out of range")


def test_a_defect_of_ours_hides_only_its_own_pipeline(tmp_path: Path) -> None:
    config = configured(tmp_path, p="t", q="t")
    commit(config, ENTRY)
    q = config.pipelines["q"]
    source = q.source.model_copy(update={"start": Start(STAMP)})
    pipelines = {**config.pipelines, "q": q.model_copy(update={"source": source})}
    config = config.model_copy(update={"pipelines": pipelines})
    found = status(config, Overflowing(facts()), STAMP.timestamp).pipelines
    assert [each.state for each in found] == [State.OK, State.UNKNOWN]
    why = "RM900 q: an error that nobody foresaw; found OverflowError('date value out of range')"
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
        held = folder_ledger(config.folder, pipeline)
        return replace(held, log=cast(LedgerLog, Unreadable())) if pipeline.name == "r" else held

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
    assert kafka.asked == [topics]
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
    RetryNotes(config.folder).write("p", Retrying(at_ms - 180_000, at_ms, 12, "RM301 k: is away"))

    found = status(config, Answering(facts()), STAMP.timestamp)

    assert found.as_dict()["pipelines"][0]["retrying"] == {
        "since_ms": at_ms - 180_000,
        "at_ms": at_ms,
        "tries": 12,
        "reason": "RM301 k: is away",
    }
    said = "p: a run tried it again, 12 times, first 3 min ago, last just now: RM301 k: is away"
    assert said in render(found, STAMP.timestamp).replace("\n  ", " ")


def test_a_secret_that_nobody_knows_leaves_only_kafka_unknown(tmp_path: Path) -> None:
    configured(tmp_path, p="t", q="u")
    file = tmp_path / "rivermouth.yml"
    told = json.loads(file.read_text(encoding="utf-8"))
    told["kafka"]["sasl.password"] = "${secret:kafka/password}"
    file.write_text(json.dumps(told), encoding="utf-8")
    found = status(load(file)).pipelines
    assert [each.state for each in found] == [State.UNKNOWN, State.UNKNOWN]
    assert all("RM207 kafka/password" in str(each.reason) for each in found)


def mirrored(config: Config, ask: AskKafka, groups: MemoryGroups) -> PipelineStatus:
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
    away = KafkaUnreachable("no broker answers")
    groups = MemoryGroups(failing={"burrow": AssertionError("it was asked")})
    found = mirrored(config, Answering(facts(), failing={"t": away}), groups)
    assert found.mirror == MirrorStatus("burrow", None, str(away))


def test_so_it_is_where_the_topics_are_those_of_a_pattern(config: Config) -> None:
    class Away(Answering):
        def names(self) -> frozenset[str]:
            raise away

    commit(config, ENTRY)
    away = KafkaUnreachable("no broker answers")
    pipeline = config.pipelines["p"]
    source = pipeline.source.model_copy(update={"topics": Topics(pattern="t.*")})
    pipelines = {"p": pipeline.model_copy(update={"source": source})}
    by_pattern = config.model_copy(update={"pipelines": pipelines})
    found = mirrored(by_pattern, Away(facts()), MemoryGroups())
    assert found.mirror == MirrorStatus("burrow", None, str(away))


def test_without_a_group_nothing_more_is_asked(config: Config) -> None:
    class Unasked(MemoryGroups):
        def read(
            self, group: str, partitions: Iterable[TopicPartition]
        ) -> dict[TopicPartition, int | None]:
            raise AssertionError("it was asked")

    commit(config, ENTRY)
    [found] = status(config, Answering(facts()), STAMP.timestamp, groups=Unasked()).pipelines
    assert found.mirror is None
