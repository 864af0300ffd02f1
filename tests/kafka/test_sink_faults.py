"""What a broker refuses or cannot take of a pipeline that sends: told, and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.faults.outcomes import refusal, went_well
from tests.kafka.test_sinks import proved, read_back, sending
from tests.lake import Lake, bid, continuous, retrying
from tests.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# A producer that waits for seconds where it would wait for minutes.
IMPATIENT = {
    "max.block.ms": "3000",
    "delivery.timeout.ms": "4000",
    "request.timeout.ms": "3000",
    "linger.ms": "0",
}


def configure(lake: Lake, pipeline: dict[str, Any], **options: str) -> None:
    """Write the configuration, with more options of Kafka's client."""
    lake.configure(p=pipeline)
    text = json.loads(lake.file.read_text(encoding="utf-8"))
    text["kafka"] |= {name.replace("_", "."): value for name, value in options.items()}
    text["kafka"] |= {name: value for name, value in IMPATIENT.items() if name not in options}
    lake.file.write_text(json.dumps(text), encoding="utf-8")


def test_a_record_above_the_request_size_is_told_with_topic_ranges_and_remedy(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("request-in")
    lake.topic("request-out")
    pipeline = retrying(sending("request-in", "request-out"), 1)
    configure(lake, pipeline, max_request_size="5000")
    lake.produce("request-in", [(b"k", bid(1), 0), (b"k" * 9000, bid(2), 0)])

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert error.code == "RM507", error
    assert error.what == "request-out did not take all records of request-in-0[0,2)"
    assert "max.request.size" in error.found, error
    assert "raise max.request.size in the section kafka" in error.remedy
    assert [each.applied for each in heard.commits] == [0]  # that of the opening

    configure(lake, pipeline, max_request_size="50000")
    went_well(lake.run(rivermouth_spark, "p"))
    assert proved(lake)["complete"]


@pytest.mark.thorough
def test_a_topic_that_is_deleted_in_mid_run_ends_the_batch_and_nothing_is_committed(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("deleted-in")
    lake.topic("deleted-out")
    configure(lake, retrying(sending("deleted-in", "deleted-out"), 300))
    lake.produce("deleted-in", [(None, bid(0), 0)])

    with continuous(lake, rivermouth_spark, "p") as heard:
        wait_for(lambda: any(each.applied for each in heard.commits))
        lake.delete_topic("deleted-out")
        lake.produce("deleted-in", [(None, bid(i), 0) for i in range(1, 4)])
        wait_for(lambda: bool(heard.retries or heard.ends))
        error = heard.retries[0].error if heard.retries else heard.ends[0].error
        assert error is not None
        assert error.code == "RM507", error
        assert error.what == "deleted-out did not take all records of deleted-in-0[1,4)"
        assert "deleted-out" in error.found, error
        committed = sum(each.applied for each in heard.commits)
        assert committed == 1
        lake.topic("deleted-out")
        wait_for(lambda: sum(each.applied for each in heard.commits) == 4)

    assert len(read_back(lake.servers, "deleted-out")) == 3
