"""A partitioned table that a run creates: its rows, and their proof."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.operate.status import status
from rivermouth.verification import verify
from tests.faults.outcomes import went_well
from tests.kafka.test_one_table import engines
from tests.lake import Lake

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def test_rows_of_a_partitioned_table_are_proved_with_an_empty_text_as_null(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("laid-out", 2)
    shops = ["", "a/b", None, "ü"]
    sent = [{"n": n, "shop": shops[n % 4], "day": f"2026-01-0{1 + n % 3}"} for n in range(48)]
    values = [json.dumps(each).encode() for each in sent]
    lake.produce("laid-out", [(None, each, n % 2) for n, each in enumerate(values)])
    target = {"table": "bronze.laid_out", "partition_by": ["shop", "day"]}
    source = {"topics": ["laid-out"], "format": "json", "max_offsets_per_trigger": 30}
    schema = "n BIGINT, shop STRING, day DATE"
    lake.configure(p={"source": source, "schema": schema, "target": target})

    assert went_well(lake.run(rivermouth_spark, "p")).ends[0].applied == 48

    assert engines(lake, "bronze/laid_out") == {"rivermouth"}
    config = load(lake.file)
    [found] = status(config).pipelines
    assert found.as_dict()["landing"] == {"by": "files", "reason": None}
    proof = verify(config, strict=True)
    assert [each.problems for each in proof.pipelines] == [()]
    assert proof.ok
    rows = {row["n"]: (row["shop"], str(row["day"])) for row in lake.rows("bronze.laid_out")}
    assert rows == {each["n"]: (each["shop"] or None, each["day"]) for each in sent}
