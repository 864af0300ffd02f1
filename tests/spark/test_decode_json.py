"""JSON records: which are rows, which are tombstones, and which go to quarantine, and why."""

from __future__ import annotations

import struct

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from rivermouth.formats.decoder import decoder, decoder_to_fold
from rivermouth.warehouse.spark_commits import session_confs
from rivermouth.write.evaluation import refused
from tests.spark.conftest import ARRIVED, SESSION_SETTINGS, Bench, RawRow, a_pipeline

pytestmark = pytest.mark.spark


def in_one_part(rows: DataFrame) -> DataFrame:
    return rows.coalesce(1)


GOOD = b'{"order_id": 7, "status": "paid", "rank": 1}'


def test_a_good_record_becomes_a_row_with_its_place(bench: Bench) -> None:
    decoded = decoder(a_pipeline())(bench.raw([(b"7", GOOD, 2, 40)]))

    expected = bench.spark.createDataFrame(
        [(7, "paid", 1, "t", 2, 40, False, None)],
        "order_id BIGINT, status STRING, rank INT, topic STRING, partition INT, offset BIGINT, "
        "tombstone BOOLEAN, code STRING",
    )
    flat = decoded.select(
        "row.*", "_kafka.topic", "_kafka.partition", "_kafka.offset", "tombstone", "code"
    )
    assert_df_equality(flat, expected, ignore_nullable=True)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (GOOD, None),
        (b'{"order_id": 7}', None),
        (b'{"order_id": 7, "unknown": 1}', None),
        (b"", "RM602"),
        (b"{", "RM603"),
        (b"null", "RM603"),
        (b"[1, 2]", "RM603"),
        (b'{"order_id": "seven"}', "RM603"),
        (b'{"order_id": 99999999999999999999}', "RM603"),
        (b'{"order_id": 7} {"order_id": 8}', "RM603"),
        (b'{"order_id": 7, "order_id": 8}', "RM603"),
        (b'{"order_id": 7, "status": "\xff"}', "RM603"),
        (b'{"order_id": 7, "status": 5}', "RM603"),
        (b'{"order_id": 7, "unknown": NaN}', "RM603"),
        (b"{'order_id': 7}", "RM603"),
        (b'{"order_id": 7.0}', None),
        (b'{"status": "no key"}', "RM605"),
        (b'{"order_id": null}', "RM605"),
    ],
)
def test_the_value_decides_whether_a_record_is_good(
    bench: Bench, value: bytes, code: str | None
) -> None:
    decoded = decoder(a_pipeline())(bench.raw([(b"7", value, 0, 0)]))
    assert [row.code for row in decoded.select("code").collect()] == [code]


@pytest.mark.parametrize(
    ("form", "key", "named"),
    [
        ("string", b"7", 7),
        ("string", b"-7", -7),
        ("string", b"seven", None),
        ("string", b"", None),
        ("string", None, None),
        ("long", struct.pack(">q", 7), 7),
        ("long", struct.pack(">q", -7), -7),
        ("long", struct.pack(">q", -(2**63)), -(2**63)),
        ("long", b"7", None),
        ("json", b'{"order_id": 7}', 7),
        ("json", b'{"order_id": "x"}', None),
        ("json", b"{}", None),
        ("json", b"oops", None),
    ],
)
def test_a_null_value_deletes_the_row_that_the_message_key_names(
    bench: Bench, form: str, key: bytes | None, named: int | None
) -> None:
    [row] = decoder(a_pipeline(key=form))(bench.raw([(key, None, 0, 0)])).collect()

    assert row.tombstone
    assert (row.code, row.row if named is None else None) == (
        None if named is not None else "RM604",
        row.row if named is None else None,
    )
    if named is not None:
        assert row.key_columns.order_id == named


def test_without_a_key_format_a_null_value_is_a_bad_record(bench: Bench) -> None:
    [row] = decoder(a_pipeline(key=None))(bench.raw([(b"7", None, 0, 0)])).collect()
    assert (row.tombstone, row.code) == (False, "RM601")


@pytest.mark.takes_long(
    "spark.sql.execution.arrow.useLargeVarTypes-true",
    "spark.sql.execution.arrow.maxRecordsPerBatch-1",
    "spark.sql.execution.arrow.maxRecordsPerBatch-0",
)
@pytest.mark.parametrize(("setting", "value"), SESSION_SETTINGS)
def test_no_setting_of_the_session_changes_what_a_record_says(
    bench: Bench, setting: str, value: str
) -> None:
    columns = "order_id BIGINT, status STRING, rank INT, at TIMESTAMP, local TIMESTAMP_NTZ"
    good = (
        b'{"order_id": 7, "status": "x", '
        b'"at": "1970-01-01T01:00+01:00", "local": "2026-01-01 02:03"}'
    )
    rows: list[RawRow] = [(b"1", good, 0, 0), (b"1", b"{", 0, 1), (b"9", None, 0, 2)]
    with session_confs(bench.spark, {setting: value}):
        decoded = decoder(a_pipeline(schema=columns))(bench.raw(rows)).selectExpr(
            "code",
            "row.order_id",
            "row.status",
            "unix_micros(row.at) AS at",
            "CAST(row.local AS STRING) AS local",
            "unix_micros(_kafka.timestamp) AS arrived",
        )
        found = decoded.orderBy("_kafka.offset").collect()
    arrived = int(ARRIVED.timestamp()) * 1_000_000
    assert [tuple(each) for each in found] == [
        (None, 7, "x", 0, "2026-01-01 02:03:00", arrived),
        ("RM603", None, None, None, None, arrived),
        (None, None, None, None, None, arrived),
    ]


def test_a_fold_is_given_what_it_reads_and_no_bytes_of_rows(bench: Bench) -> None:
    rows: list[RawRow] = [(b"1", GOOD, 0, 0), (b"9", None, 0, 1)]
    pipeline = a_pipeline()
    for reads, columns in ((None, ["order_id", "status", "rank"]), ({"rank"}, ["rank"])):
        decode = decoder_to_fold(pipeline, in_one_part, reads, ordered=True)
        found = decode(bench.raw(rows)).orderBy("_kafka.offset")
        good, deleting = found.collect()
        assert found.columns == ["row", "key_columns", "_kafka", "tombstone", "code"]
        assert found.select("row.*").columns == columns
        assert (good.row.rank, good.key_columns.order_id) == (1, 7)
        assert (good.tombstone, good.code) == (False, None)
        assert (deleting.tombstone, deleting.key_columns.order_id) == (True, 9)


def test_a_fold_that_asks_for_no_order_is_given_no_offset(bench: Bench) -> None:
    decode = decoder_to_fold(a_pipeline(), in_one_part, None, ordered=False)
    found = decode(bench.raw([(b"1", GOOD, 0, 0)])).select("_kafka.*")
    assert [each.asDict() for each in found.collect()] == [{"topic": "t", "partition": 0}]


@pytest.mark.takes_long("{-None", "-string", "-None", "None-string")
@pytest.mark.parametrize("key", ["string", None])
@pytest.mark.parametrize("bad", [b"{", b"", None])
def test_a_fold_refuses_a_bad_record_in_the_task_that_decodes_it(
    bench: Bench, key: str | None, bad: bytes | None
) -> None:
    decode = decoder_to_fold(a_pipeline(key=key), in_one_part, None, ordered=True)
    rows = decode(bench.raw([(b"1", GOOD, 0, 0), (b"2", bad, 0, 1)]))
    if bad is None and key is not None:  # a tombstone
        assert rows.count() == 2
        return
    with pytest.raises(PySparkException) as raised:
        rows.collect()
    assert refused(raised.value)
