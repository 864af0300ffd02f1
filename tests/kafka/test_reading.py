"""Offset ranges as values, on a real broker with real Spark: exactly these records, each time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

import rivermouth
from rivermouth import OffsetRange, TopicPartition
from rivermouth.errors import RangesRefused, RetentionLost, TopicMissing, TopicRecreated
from rivermouth.local.broker import Broker
from rivermouth.replay.readable import ReadableRange
from tests.faults.outcomes import went_well
from tests.kafka.topics import (
    CLEANS_AT_ONCE,
    add_partitions,
    delete_before,
    in_transaction,
    let_compact,
    wait_for_compaction,
)
from tests.lake import Lake, append_pipeline, bid
from tests.pages import page, section, snippets

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def span(topic: str, partition: int, start: int, until: int) -> OffsetRange:
    return OffsetRange(TopicPartition(topic, partition), start, until)


def places(raw: DataFrame) -> list[tuple[int, int]]:
    """(partition, offset) of every Kafka row."""
    return sorted((each["partition"], each["offset"]) for each in raw.collect())


def test_the_same_records_come_each_time_and_none_beyond_the_borders(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("reread", 2)
    config = lake.configure(p=append_pipeline("reread"))
    lake.produce("reread", [(None, bid(i), i % 2) for i in range(20)])
    in_transaction(lake.servers, "reread", bid(90), bid(91), commit=False)  # 10, 11, marker 12
    in_transaction(lake.servers, "reread", bid(92), commit=True)  # 13, marker 14
    wanted = [span("reread", 0, 3, 5), span("reread", 0, 8, 15), span("reread", 1, 4, 7)]

    raw = rivermouth.read(rivermouth_spark, config, [*wanted, span("reread", 1, 0, 0)])
    first = places(raw)
    add_partitions(lake.servers, "reread", 4)
    lake.produce("reread", [(None, bid(i), i % 4) for i in range(20)])

    expected = [(0, 3), (0, 4), (0, 8), (0, 9), (0, 13), (1, 4), (1, 5), (1, 6)]
    assert first == expected
    assert places(raw) == expected
    assert places(rivermouth.read(rivermouth_spark, config, wanted[::-1])) == expected
    counts = [each.records for each in rivermouth.readable(config, wanted)]
    assert counts == [2, 3, 3]
    nothing = rivermouth.read(rivermouth_spark, config, [span("reread", 0, 3, 3)])
    assert nothing.collect() == []
    assert [*nothing.schema] == [*raw.schema]


def test_what_is_deleted_or_not_written_is_refused_before_anything_is_read(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("refused")
    config = lake.configure(p=append_pipeline("refused"))
    lake.produce("refused", [(None, bid(i), 0) for i in range(10)])
    left_open = in_transaction(lake.servers, "refused", bid(90), commit=None)  # 10
    whole = span("refused", 0, 2, 10)
    late = rivermouth.read(rivermouth_spark, config, [whole])
    delete_before(lake.servers, "refused", 0, 6)

    def refusal(*ranges: OffsetRange) -> Exception:
        with pytest.raises(rivermouth.RivermouthError) as refused:
            rivermouth.read(rivermouth_spark, config, ranges)
        return refused.value

    assert isinstance(lost := refusal(whole), RetentionLost)
    assert "refused-0[2,10) in a log that starts at 6" in lost.found
    assert isinstance(beyond := refusal(span("refused", 0, 6, 11)), RangesRefused)
    assert "ends at 10, with 1 offsets behind open transactions" in beyond.found
    assert isinstance(refusal(span("refused", 3, 0, 1)), RangesRefused)
    assert isinstance(refusal(span("no-such-topic", 0, 0, 1)), TopicMissing)
    assert isinstance(refusal(whole, span("refused", 0, 7, 8)), RangesRefused)
    with pytest.raises(Exception, match=r"(?i)offset"):  # failOnDataLoss: never fewer rows
        late.collect()
    left = rivermouth.readable(config, [span("refused", 0, 4, 9), span("refused", 0, 0, 4)])
    assert [(each.records, each.first, each.last) for each in left] == [(3, 6, 8), (0, None, None)]
    assert [each.deleted for each in left] == [span("refused", 0, 4, 6), span("refused", 0, 0, 4)]
    left_open.abort_transaction()


def decoded(rows: DataFrame) -> dict[tuple[str, int, int], dict[str, Any]]:
    """The good rows by topic, partition and offset, as the table has them."""
    good = rows.where("code IS NULL").select("row.*", "_kafka").toArrow().to_pylist()
    return by_place(good)


def by_place(rows: list[dict[str, Any]]) -> dict[tuple[str, int, int], dict[str, Any]]:
    found = {}
    for each in rows:
        kafka = each["_kafka"]
        found[kafka["topic"], kafka["partition"], kafka["offset"]] = each
    assert len(found) == len(rows), "an offset came twice"
    return found


def test_a_reread_of_each_recorded_range_gives_the_rows_of_the_table(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("recorded", 2)
    config = lake.configure(p=append_pipeline("recorded", max_offsets_per_trigger=10))
    lake.produce("recorded", [(None, bid(i), i % 2) for i in range(25)])
    in_transaction(lake.servers, "recorded", bid(90), commit=False)
    lake.produce("recorded", [(b"k", b"{oops", 0), (None, bid(26), 0)])
    heard = went_well(lake.run(rivermouth_spark, "p"))

    entries = rivermouth.ranges(config, "p")
    whole = rivermouth.read(rivermouth_spark, config, entries, pipeline="p")

    table = by_place(lake.rows("bronze.recorded"))
    assert len(table) == 26
    assert decoded(whole) == table
    bad = whole.where("code IS NOT NULL").select("code", "key", "value").collect()
    assert [tuple(each) for each in bad] == [("RM603", b"k", b"{oops")]
    read = [(each.sequence, each.ranges) for each in heard.commits]
    assert [(each.sequence, each.ranges) for each in entries][-len(read) :] == read
    pieces: dict[tuple[str, int, int], dict[str, Any]] = {}
    for entry in (each for each in entries if any(one.span for one in each.ranges)):
        rows = decoded(rivermouth.read(rivermouth_spark, config, [entry], pipeline="p"))
        assert not {*pieces} & {*rows}
        pieces |= rows
    assert pieces == table
    newest = entries[-1]
    assert rivermouth.ranges(config, "p", since=newest.sequence) == (newest,)
    assert rivermouth.ranges(config, "p", until=newest.committed_at) == entries[:-1]

    lake.delete_topic("recorded")
    lake.topic("recorded", 2)
    lake.produce("recorded", [(None, bid(i), i % 2) for i in range(60)])
    with pytest.raises(TopicRecreated):
        rivermouth.read(rivermouth_spark, config, entries)


def test_a_range_between_two_times_begins_and_ends_at_the_first_record_from_then_on(
    lake: Lake,
) -> None:
    lake.topic("between-times", 2)
    config = lake.configure(p=append_pipeline("between-times"))
    begin = datetime.fromtimestamp(int(time.time()) - 100, timezone.utc)
    producer = Producer({"bootstrap.servers": lake.servers})
    for second in range(10):
        stamp = int(begin.timestamp() + second) * 1000
        producer.produce("between-times", bid(second), partition=0, timestamp=stamp)
    producer.flush()

    def between(start: float, end: float | None) -> tuple[OffsetRange, ...]:
        until = None if end is None else begin + timedelta(seconds=end)
        return rivermouth.ranges_between(
            config, "between-times", begin + timedelta(seconds=start), until
        )

    empty = span("between-times", 1, 0, 0)
    assert between(3, 7) == (span("between-times", 0, 3, 7), empty)
    assert between(2.5, 7.5) == (span("between-times", 0, 3, 8), empty)
    assert between(3, None) == (span("between-times", 0, 3, 10), empty)
    assert between(-50, 50) == (span("between-times", 0, 0, 10), empty)
    assert between(50, None) == (span("between-times", 0, 10, 10), empty)


@pytest.mark.thorough
def test_the_python_of_the_page_runs(
    lake: Lake,
    rivermouth_spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lake.topic("bids_of_the_page", 2)
    lake.configure(bids_of_the_page=append_pipeline("bids_of_the_page"))
    lake.produce("bids_of_the_page", [(None, bid(i), i % 2) for i in range(20)])
    went_well(lake.run(rivermouth_spark, "bids_of_the_page"))
    lake.file.rename(lake.folder / "lake.yml")
    monkeypatch.chdir(lake.folder)
    names: dict[str, Any] = {"spark": rivermouth_spark}
    shown = snippets(section(page("reading"), "## Ranges as values"), "python")
    assert len(shown) == 2
    for snippet in shown:
        exec(snippet.replace('"bids"', '"bids_of_the_page"'), names)
    said = capsys.readouterr().out
    assert "6 records from 2 to 7 deleted: None" in said


@pytest.mark.thorough
def test_what_compaction_took_is_told_by_counts_and_the_rest_comes_each_time(
    tmp_path: Path, rivermouth_spark: SparkSession
) -> None:
    with Broker(settings=CLEANS_AT_ONCE) as broker:
        check_compaction(Lake(tmp_path, broker.bootstrap_servers), rivermouth_spark)


def check_compaction(lake: Lake, spark: SparkSession) -> None:
    lake.topic("compacted")
    config = lake.configure(p=append_pipeline("compacted"))
    lake.produce("compacted", [(b"%d" % (i % 3), bid(i), 0) for i in range(9)])
    in_transaction(lake.servers, "compacted", bid(90), commit=False, key=b"2")  # 9, marker 10
    lake.produce("compacted", [(b"last", bid(11), 0)])
    whole, first, rest = (span("compacted", 0, *each) for each in ((0, 12), (0, 5), (5, 12)))
    [before] = rivermouth.readable(config, [whole])
    assert before == ReadableRange(whole, records=10, first=0, last=11)
    raw = rivermouth.read(spark, config, [whole])
    assert places(raw) == [(0, each) for each in (*range(9), 11)]

    let_compact(lake.servers, "compacted")
    wait_for_compaction(lake.servers, config, "compacted", range(6), bid(0))

    left = [(0, each) for each in (6, 7, 8, 11)]
    assert places(raw) == left, "the same value, evaluated again"
    again = rivermouth.read(spark, config, [first, rest], pipeline="p")
    assert [places(again.select("_kafka.*")) for _ in range(2)] == [left, left]
    assert sorted(row[0] for row in again.select("row.auction").collect()) == [6, 7, 8, 11]
    assert rivermouth.readable(config, [whole]) == (
        ReadableRange(whole, records=4, first=6, last=11),
    )
    assert rivermouth.readable(config, [first, rest]) == (
        ReadableRange(first),
        ReadableRange(rest, records=4, first=6, last=11),
    )
