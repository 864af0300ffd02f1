"""What a broker refuses or cannot take of a pipeline that sends: told, and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.faults.outcomes import applied, refusal, went_well
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


@pytest.mark.takes_long("topic")
@pytest.mark.parametrize(
    ("refuses", "size", "found"),
    [
        ("producer", 9_000, "max.request.size"),
        # A record above the batch size of the producer is a batch alone: Kafka names it at once.
        ("topic", 30_000, "larger than the max message size"),
    ],
    ids=["producer", "topic"],
)
def test_a_record_above_the_request_size_is_told_with_topic_ranges_and_remedy(
    lake: Lake, rivermouth_spark: SparkSession, refuses: str, size: int, found: str
) -> None:
    source, sink = f"request-{refuses}-in", f"request-{refuses}-out"
    lake.topic(source)
    lake.topic(sink, max_message_bytes="20000")
    pipeline = retrying(sending(source, sink), 1)
    limit = {"max_request_size": "5000"} if refuses == "producer" else {}
    configure(lake, pipeline, **limit)
    lake.produce(source, [(b"k", bid(1), 0), (b"k" * size, bid(2), 0)])

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert error.code == "RM507", error
    assert error.what == f"{sink} did not take all records of {source}-0[0,2)"
    assert found in error.found, error
    assert [each.applied for each in heard.commits] == [0]  # that of the opening
    if refuses == "producer":
        assert "raise max.request.size in the section kafka" in error.remedy
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
        wait_for(lambda: applied(heard) == 1)
        lake.delete_topic("deleted-out")
        lake.produce("deleted-in", [(None, bid(i), 0) for i in range(1, 4)])
        wait_for(lambda: bool(heard.retries or heard.ends))
        error = heard.retries[0].error if heard.retries else refusal(heard)
        assert error.code == "RM507", error
        assert error.what == "deleted-out did not take all records of deleted-in-0[1,4)"
        assert "deleted-out" in error.found, error
        assert applied(heard) == 1
        lake.topic("deleted-out")
        wait_for(lambda: applied(heard) == 4)

    assert len(read_back(lake.servers, "deleted-out")) == 3
