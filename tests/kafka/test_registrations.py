"""A format, a shape and a landing of a few lines each: one registration, and all commands know it.

They stand in ``tests/kinds``. Two formats times two shapes run side by side, and every row to add
lands by the new landing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config.formats import FORMATS
from rivermouth.config.platforms import LOCAL, SERVERLESS
from rivermouth.config.registry import LANDINGS, SHAPES
from rivermouth.local.broker import Broker
from rivermouth.testing import Record
from tests.commands import command
from tests.faults.checker.at_length import at_length
from tests.kinds.kinds import PAIRS, registered
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

ORDERS, BIDS = "kinds-orders", "kinds-bids"
RECORDS: Mapping[str, list[Record]] = {
    ORDERS: [
        (None, b"id=1;status=open;amount=10.50", 0),
        (None, b"id=2;status=open", 0),
        (None, b"id=1;status=paid;amount=10.50", 0),
        (None, b"id=x;status=open", 0),
        (None, b"oops", 0),
        (None, b"", 0),
        (None, None, 0),
        (None, b"status=lost", 0),
        (None, b"id=3;status=\xff", 0),
        (None, b"id=4;amount=1.005;id=5", 0),
        (None, b"id=2;status=again", 0),
        (None, b"id=1;status=late", 1),
        (None, b"id=6;status=new;other=x", 1),
        (None, b"id=6;status=again", 1),
    ],
    BIDS: [
        (None, b'{"id":1,"status":"a"}', 0),
        (None, b'{"id":1,"status":"b"}', 0),
        (None, b"{oops", 0),
        (None, b'{"id":1,"status":"c"}', 0),
    ],
}


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    """The new kinds are known in this process too, as long as the tests of this module run."""
    before = [*FORMATS.by_name], [*SHAPES.by_name], [*LANDINGS.in_order]
    with registered():
        yield
    assert ([*FORMATS.by_name], [*SHAPES.by_name], [*LANDINGS.in_order]) == before


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
) -> Lake:
    """Four pipelines, run by the command."""
    lake = Lake(tmp_path_factory.mktemp("kinds"), rivermouth_broker.bootstrap_servers)
    lake.topic(ORDERS, 2)
    lake.topic(BIDS, 1)
    keyed = {"mode": "first_seen", "keys": ["id"]}
    lake.configure(
        receipts=pipeline(ORDERS, "pairs", "bronze.receipts"),
        orders=pipeline(ORDERS, "pairs", "silver.orders", **keyed),
        bids=pipeline(BIDS, "json", "bronze.bids"),
        first_bids=pipeline(BIDS, "json", "silver.bids", **keyed),
    )
    for topic, records in RECORDS.items():
        lake.produce(topic, records)
    done = lake.command("run", spark=rivermouth_spark)
    assert done.returncode == 0, done.stdout + done.stderr
    return lake


def pipeline(topic: str, form: str, table: str, **target: object) -> dict[str, Any]:
    """Few offsets in a batch, so that the rows of a key come in several."""
    return {
        "source": {"topics": [topic], "format": form, "max_offsets_per_trigger": 8},
        "schema": "id BIGINT, status STRING, amount DECIMAL(8,2)",
        "target": {"table": table, **target},
    }


def proofs(lake: Lake) -> tuple[int, dict[str, Any]]:
    """The exit code of ``verify``, and what it says of each pipeline."""
    done = lake.command("verify", "--json")
    pipelines = json.loads(done.stdout)["pipelines"]
    return done.returncode, {each["name"]: each for each in pipelines}


def places(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    rows = lake.rows(table)
    return sorted(
        (row["_kafka"]["partition"], row["_kafka"]["offset"], row["id"], row["status"])
        for row in rows
    )


def test_a_file_with_the_new_names_is_valid_where_they_are_registered(shop: Lake) -> None:
    known = shop.command("validate")
    assert known.returncode == 0, known.stdout + known.stderr
    words = [sys.executable, "-m", "rivermouth", "validate", str(shop.file)]
    unknown = subprocess.run(words, capture_output=True, text=True, check=False)
    assert unknown.returncode == 2
    assert 'source.format must be json, not "pairs"' in unknown.stderr
    assert (
        'target.mode must be append or upsert or insert or aggregate or send, not "first_seen"'
        in unknown.stderr
    )


def test_the_schema_of_the_configuration_offers_them() -> None:
    schema = json.loads(command("config", "schema").stdout)
    (one,) = schema["properties"]["pipelines"]["patternProperties"].values()
    source, target = (one["properties"][name]["properties"] for name in ("source", "target"))
    assert source["format"]["anyOf"][0]["enum"] == ["json", "pairs"]
    assert target["mode"]["anyOf"][0]["enum"] == [*SHAPES.by_name]
    assert target["mode"]["description"].endswith("`first_seen`: keep the first row of each key.")


def test_doctor_names_the_kinds_of_each_pipeline(shop: Lake) -> None:
    said = " ".join(shop.command("doctor").stdout.split())
    assert "pipeline receipts format pairs, mode append, rows land by staged_insert" in said
    folded = "rows land through Spark: the mode folds records in Spark"
    assert f"pipeline orders format pairs, mode first_seen, {folded}" in said
    assert "pipeline bids format json, mode append, rows land by staged_insert" in said


def test_a_landing_is_taken_only_where_the_platform_has_what_it_needs() -> None:
    assert LANDINGS.first(LOCAL, keyed=False).name == "staged_insert"
    assert LANDINGS.first(SERVERLESS, keyed=False).name == "dataframe_writer"


def test_each_good_record_has_its_effect(shop: Lake) -> None:
    assert places(shop, "bronze.receipts") == [
        (0, 0, 1, "open"),
        (0, 1, 2, "open"),
        (0, 2, 1, "paid"),
        (0, 7, None, "lost"),
        (0, 9, 4, None),
        (0, 10, 2, "again"),
        (1, 0, 1, "late"),
        (1, 1, 6, "new"),
        (1, 2, 6, "again"),
    ]
    assert places(shop, "silver.orders") == [
        (0, 0, 1, "open"),
        (0, 1, 2, "open"),
        (0, 9, 4, None),
        (1, 1, 6, "new"),
    ]
    assert places(shop, "bronze.bids") == [(0, 0, 1, "a"), (0, 1, 1, "b"), (0, 3, 1, "c")]
    assert places(shop, "silver.bids") == [(0, 0, 1, "a")]
    amounts = {row["id"]: row["amount"] for row in shop.rows("silver.orders")}
    assert amounts == {1: Decimal("10.50"), 2: None, 4: Decimal("1.01"), 6: None}


def test_bad_records_lie_in_quarantine_and_each_format_says_why(shop: Lake) -> None:
    def found(table: str) -> list[tuple[int, str]]:
        return sorted((row["offset"], row["code"]) for row in shop.rows(f"{table}_quarantine"))

    common = [(3, "RM603"), (4, "RM603"), (5, "RM602"), (6, "RM601")]
    assert found("bronze.receipts") == [*common, (8, "RM603")]
    assert found("silver.orders") == [*common, (7, "RM605"), (8, "RM603")]
    assert found("bronze.bids") == found("silver.bids") == [(2, "RM603")]
    reasons = {
        table: {
            row["reason"] for row in shop.rows(f"{table}_quarantine") if row["offset"] in (2, 3)
        }
        for table in ("bronze.receipts", "bronze.bids")
    }
    assert reasons == {
        "bronze.receipts": {PAIRS.reasons["RM603"]},
        "bronze.bids": {
            "the value is not JSON: expecting property name enclosed in double quotes (character 2)"
        },
    }


@pytest.mark.parametrize("table", ["bronze.receipts", "bronze.bids"])
def test_the_new_landing_counts_every_batch_before_its_commit(shop: Lake, table: str) -> None:
    history = DeltaTable(str(shop.path(table))).history()
    texts = [each["userMetadata"] for each in history if "userMetadata" in each]
    entries = [at_length(json.loads(each)) for each in texts]
    batches = [
        each for each in entries if any(start < until for *_, start, until in each["ranges"])
    ]
    assert batches != []
    assert [each for each in batches if "rows" not in each] == []


def test_status_shows_them_caught_up(shop: Lake) -> None:
    done = shop.command("status", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["pipelines"]
    assert [(each["name"], each["state"]) for each in found] == [
        ("receipts", "OK"),
        ("orders", "OK"),
        ("bids", "OK"),
        ("first_bids", "OK"),
    ]
    assert found[1]["position"] == {ORDERS: {"0": 11, "1": 3}}


def test_verify_proves_every_record(shop: Lake) -> None:
    code, found = proofs(shop)
    assert code == 0, found
    figures = {
        name: (each["records"], each["quarantined"], each.get("repeated"), each["unchecked"])
        for name, each in found.items()
    }
    assert figures == {
        "receipts": (14, 5, None, []),
        "orders": (14, 6, 4, []),
        "bids": (4, 1, None, []),
        "first_bids": (4, 1, 2, []),
    }


OF_OFFSET_2 = """named_struct('topic', _kafka['topic'], 'partition', _kafka['partition'],
    'offset', 2, 'timestamp', _kafka['timestamp'])"""
PAID = {"status": "'paid'"}
DAMAGES: Mapping[str, tuple[str, str, dict[str, str], str]] = {
    "the row of a later record": (
        "silver.orders",
        "id = 1",
        {**PAID, "_kafka": OF_OFFSET_2},
        "different",
    ),
    "another value": ("silver.orders", "id = 1", PAID, "different"),
    "no row of a key": ("silver.orders", "id = 6", {}, "missing"),
    "a value of the new format": ("bronze.receipts", "id = 4", {"amount": "1.00"}, "different"),
    "no row of a record": ("bronze.receipts", "id = 4", {}, "missing"),
}
"""Where a row gets other values, or is deleted, and what ``verify`` calls that."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_finds_a_wrong_row(shop: Lake, tmp_path: Path, damage: str) -> None:
    copy = Lake(tmp_path / "copy", shop.servers)
    shutil.copytree(shop.folder, copy.folder)
    table, row, values, kind = DAMAGES[damage]

    spoilt = DeltaTable(copy.path(table))
    if values:
        spoilt.update(values, predicate=row)
    else:
        spoilt.delete(row)

    code, found = proofs(copy)
    assert code == 3
    [faulty] = (name for name, each in found.items() if not each["ok"])
    assert faulty == ("orders" if table == "silver.orders" else "receipts")
    assert found[faulty][kind] == 1, found[faulty]["problems"]
