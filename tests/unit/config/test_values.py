"""The small readers: schema text, names, starts, durations, references."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from rivermouth.config import OFFSETS_TABLE, Column, Secret, Start, TableName
from rivermouth.config.columns import parse_columns
from rivermouth.config.names import read_table
from rivermouth.config.problems import Refused
from rivermouth.config.secret import sensitive, substitute
from rivermouth.config.start import read_start
from rivermouth.config.values import check_servers, read_duration

TYPES = [
    ("bigint", "BIGINT"),
    ("long", "BIGINT"),
    ("Integer", "INT"),
    ("short", "SMALLINT"),
    ("byte", "TINYINT"),
    ("real", "FLOAT"),
    ("decimal", "DECIMAL(10,0)"),
    ("decimal(5)", "DECIMAL(5,0)"),
    ("DECIMAL ( 12 , 2 )", "DECIMAL(12,2)"),
    ("timestamp_ntz", "TIMESTAMP_NTZ"),
    ("array<string>", "ARRAY<STRING>"),
    ("map<string,array<int>>", "MAP<STRING, ARRAY<INT>>"),
    ("struct<A: int, `b-c` long>", "STRUCT<A: INT, `b-c`: BIGINT>"),
    ("STRUCT<a: STRUCT<b: DECIMAL(3,1)>>", "STRUCT<a: STRUCT<b: DECIMAL(3,1)>>"),
]


@pytest.mark.parametrize(("text", "normal"), TYPES)
def test_types_are_normalised(text: str, normal: str) -> None:
    (column,) = parse_columns(f"c {text}")
    assert column == Column("c", normal)
    assert parse_columns(f"c {column.type}") == (column,)


def test_columns_keep_order_and_quotes_and_may_have_comments() -> None:
    columns = parse_columns("`order-id`: BIGINT COMMENT 'the buyer\\'s, (first)',\n  b INT")
    assert columns == (Column("order-id", "BIGINT"), Column("b", "INT"))


@pytest.mark.parametrize(
    ("text", "kind", "primitive", "floating", "integral"),
    [
        ("BIGINT", "BIGINT", True, False, True),
        ("DOUBLE", "DOUBLE", True, True, False),
        ("DECIMAL(3,1)", "DECIMAL", True, False, False),
        ("STRUCT<a: INT>", "STRUCT", False, False, False),
    ],
)
def test_a_column_knows_its_kind(
    text: str, kind: str, primitive: bool, floating: bool, integral: bool
) -> None:
    column = Column("c", text)
    shown = (column.kind, column.primitive, column.floating, column.integral)
    assert shown == (kind, primitive, floating, integral)


def test_a_deeply_nested_type_is_refused() -> None:
    with pytest.raises(Refused, match="nested too deeply"):
        parse_columns("c " + "ARRAY<" * 5000)


def test_a_table_knows_its_side_table_and_folder() -> None:
    table = TableName.parse("silver.Orders_1")
    assert str(table) == "silver.Orders_1"
    assert table.quarantine == TableName("silver", "Orders_1_quarantine")
    assert table.path(Path("/lake")) == Path("/lake/silver/Orders_1")
    assert str(OFFSETS_TABLE) == "rivermouth.offsets"


BAD_TABLES = ["", "t", "a.b.c", "a.", ".b", "1a.b", "a.b c", "a/../b.c", "a.b;drop", "ä.b", "a.b\n"]


@pytest.mark.parametrize("text", [*BAD_TABLES, f"a.{'b' * 129}"])
def test_a_table_name_carries_no_path_and_no_sql(text: str) -> None:
    with pytest.raises(Refused):
        TableName.parse(text)


def test_a_table_name_leaves_room_for_its_quarantine() -> None:
    longest = read_table(f"a.{'b' * 117}")
    assert len(longest.quarantine.name) == 128
    with pytest.raises(Refused):
        read_table(f"a.{'b' * 118}")


def test_a_start_names_the_offset_of_each_partition() -> None:
    assert read_start("latest").of("t", 3) == "latest"
    start = read_start({"t": {"0": 5, 1: "latest"}, "u": "latest"})
    assert [start.of("t", n) for n in range(3)] == [5, "latest", None]
    assert [start.of(topic, 7) for topic in ("u", "another")] == ["latest", "earliest"]
    assert [start.named(topic) for topic in ("t", "u")] == [{0: 5, 1: "latest"}, {}]
    assert read_start(start) is start
    assert start == Start(offsets={"t": {0: 5, 1: "latest"}, "u": "latest"})
    assert hash(start) == hash(Start())


SIX = datetime(2026, 11, 1, 6, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-11-01T06:00:00Z", SIX),
        ("2026-11-01 07:00:00+01:00", SIX),
        ({"t": "2026-11-01T06:00:00Z"}, SIX),
        ({"t": {0: "2026-11-01T06:00:00Z"}}, SIX),
    ],
)
def test_a_start_may_be_a_time(written: object, expected: datetime) -> None:
    assert read_start(written).of("t", 0) == expected


def test_no_start_is_before_1970() -> None:
    with pytest.raises(Refused) as refused:  # Kafka would take it for an end of the log
        read_start("1969-12-31T23:59:59.999Z")
    assert "is before 1970" in refused.value.faults[0].message


@pytest.mark.parametrize("written", ["2026-11-01", "2026-11-01T06:00:00"])
def test_a_time_has_a_zone(written: str) -> None:
    for value in (written, {"t": written}, {"t": {"0": written}}):
        with pytest.raises(Refused) as refused:
            read_start(value)
        [fault] = refused.value.faults
        assert "without a zone" in fault.message


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("24h", 86_400_000), ("0s", 0)],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert read_duration(text) == timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize("value", [10, 1.5, True, None, "10", "s", "-1s", "1 s", "1d", "25h", "٣s"])
def test_what_is_not_a_duration_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        read_duration(value)


@pytest.mark.parametrize(
    "servers", ["k:9092", "a:1,b:65535", "a:1, b:2", "[::1]:9092", "SSL://h-1.example:9093"]
)
def test_servers(servers: str) -> None:
    assert list(check_servers(servers)) == []


@pytest.mark.parametrize("servers", ["", "k", "k:", ":1", "k:0", "k:65536", "a:1,", "a:1;b:2"])
def test_what_is_not_a_list_of_servers_is_refused(servers: str) -> None:
    assert len(list(check_servers(servers))) == 1


ENVIRON = {"A": "1", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${env:A}", "1"),
        ("x${env:A}y${env:A}", "x1y1"),
        ("${env:NONE:-d:e}", "d:e"),
        ("${env:NONE:-}", ""),
        ("${env:EMPTY:-d}", "d"),
        ("${env:EMPTY}", ""),
        ("$${env:A}", "${env:A}"),
        ("$$${env:A}", "$${env:A}"),
        ("$A $ {x}", "$A $ {x}"),
    ],
)
def test_references_are_replaced(text: str, result: str) -> None:
    assert substitute(text, ENVIRON, secret=False) == result


@pytest.mark.parametrize("text", ["${env:NONE}", "${env:1}", "${env:A", "${foo:a}", "${}", "${A}"])
def test_references_that_cannot_be_replaced_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        substitute(text, ENVIRON, secret=False)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("sasl.password", True),
        ("ssl.key.Password", True),
        ("sasl.jaas.config", True),
        ("sasl.oauthbearer.client.secret", True),
        ("ssl.keystore.key", True),
        ("sasl.username", False),
        ("ssl.truststore.location", False),
        ("client.id", False),
    ],
)
def test_sensitive_names(name: str, secret: bool) -> None:
    assert sensitive(name) is secret


def test_a_secret_is_a_value() -> None:
    secret = Secret("a")
    assert secret == Secret("a")
    assert secret != Secret("b")
    assert len({secret, Secret("a")}) == 1
    assert copy.deepcopy(secret) == secret
    assert f"{secret} {secret!r} {secret:}" == "******** ******** ********"
