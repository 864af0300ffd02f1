"""Own code before a sink, on a real broker: what is sent, proved, refused and killed."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.faults.outcomes import applied, refusal, went_well
from tests.kafka.test_sinks import calling, proved, read_back, sending
from tests.lake import Lake, bid, retrying
from tests.pages import page, section, snippets
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

LEAST, MOST = "at-least-once", "at-most-once"


def own(pipeline: dict[str, Any], function: str, schema: str = "item BIGINT") -> dict[str, Any]:
    """The pipeline with a function before its sink."""
    target = {**pipeline["target"], "schema": schema}
    return {**pipeline, "transform": f"tests.kafka.own_code:{function}", "target": target}


def produce(lake: Lake, topic: str, number: int = 10) -> None:
    lake.produce(topic, [(b"k%d" % i, bid(i), i // 2 % 2) for i in range(number)])


def ids(lake: Lake, topic: str) -> list[str]:
    found = read_back(lake.servers, topic)
    return [dict(each.headers())["rm-id"].decode() for each in found]


@pytest.mark.takes_long("shuffled")
@pytest.mark.parametrize("function", ["even_items", "shuffled"])
def test_made_rows_are_sent_with_key_and_id_of_their_records_in_their_order(
    lake: Lake, rivermouth_spark: SparkSession, function: str
) -> None:
    source, sink = f"own-{function}-in", f"own-{function}-out"
    lake.topic(source, 2)
    lake.topic(sink)
    lake.configure(p=own(sending(source, sink), function))
    produce(lake, source, 40)
    lake.produce(source, [(None, b"oops", 0)])

    went_well(lake.run(rivermouth_spark, "p"))

    sent = [
        (dict(each.headers())["rm-id"].decode(), each.key(), json.loads(each.value())["item"])
        for each in read_back(lake.servers, sink)
    ]
    expected = {
        f"p/{source}/{i // 2 % 2}/{i // 4 * 2 + i % 2}": (b"k%d" % i, i) for i in range(0, 40, 2)
    }
    assert {each: (key, item) for each, key, item in sent} == expected
    for number in range(2):
        of_partition = [
            int(each.split("/")[3]) for each, *_ in sent if each.split("/")[2] == f"{number}"
        ]
        assert of_partition == sorted(of_partition)
    proof = proved(lake)
    assert proof["ok"], proof
    assert proof["not_checked"] == {"rows_of_own_code": 20, "records_left_out": 20}
    assert (proof["records"], proof["quarantined"], proof["repeated"]) == (41, 1, 0)

    lake.delete_topic(sink)
    lake.topic(sink)
    assert proved(lake)["missing"] == 20, "no more than the entry says were left out"


@pytest.mark.thorough
@pytest.mark.parametrize("function", ["even_items", "shuffled"])
def test_a_function_gets_made_rows_in_the_order_of_their_records(
    lake: Lake, rivermouth_spark: SparkSession, function: str
) -> None:
    source = f"own-called-{function}"
    lake.topic(source, 2)
    lake.configure(p=own(calling(source, "tests.kafka.called:note_items"), function))
    produce(lake, source, 40)

    heard = went_well(lake.run(rivermouth_spark, "p"))

    assert applied(heard) == 40
    proof = proved(lake)
    assert proof["ok"], proof
    assert proof["not_checked"] == {"rows_in_a_function": 40}


@pytest.mark.thorough
def test_the_example_of_the_page_runs(lake: Lake, rivermouth_spark: SparkSession) -> None:
    example, *_ = snippets(section(page("sinks"), "## Your own code before it"), "yaml")
    # Other tests on the worker's broker have a topic of the page's name, too.
    text = example.replace("localhost:9092", lake.servers).replace("[orders]", "[own-page]")
    lake.file.write_text(text, encoding="utf-8")
    lake.topic("own-page")
    lake.topic("orders-upper")
    lake.produce("own-page", [(None, b'{"order_id": 7, "status": "paid"}', 0)])

    went_well(lake.run(rivermouth_spark, "paid"))

    [found] = read_back(lake.servers, "orders-upper")
    assert (found.key(), json.loads(found.value())) == (b"7", {"id": 7, "status": "PAID"})
    assert proved(lake)["ok"]


@pytest.mark.thorough
@pytest.mark.parametrize("delivery", [LEAST, MOST])
def test_a_made_row_that_names_no_topic_is_told_and_nothing_is_sent(
    lake: Lake, rivermouth_spark: SparkSession, delivery: str
) -> None:
    topics = ("own-routed-in", "own-routed-a", "own-routed-b")
    for topic in topics:
        lake.topic(topic)
    place = {"topic_column": "to", "message_key": ["item"], "delivery": delivery}
    plain = sending("own-routed-in", "own-routed-a", **place)
    plain["target"]["kafka"] = ["own-routed-a", "own-routed-b"]
    lake.configure(p=retrying(own(plain, "routed", "item BIGINT, `to` STRING"), 1))
    lake.produce("own-routed-in", [(None, bid(i), 0) for i in range(4)])
    went_well(lake.run(rivermouth_spark, "p"))
    assert [each.key() for each in read_back(lake.servers, "own-routed-a")] == [b"0", b"2"]
    proof = proved(lake)
    assert proof["ok"], proof
    assert proof["not_checked"] == {"rows_of_own_code": 4}

    lake.produce("own-routed-in", [(None, bid(i), 0) for i in range(4, 9)])
    error = refusal(lake.run(rivermouth_spark, "p"))

    assert error.code == "RM506"
    assert "to names none of the topics" in error.found, error
    assert '"offset":7' in error.found
    assert len(ids(lake, "own-routed-a")) + len(ids(lake, "own-routed-b")) == 4
    for topic in topics:
        lake.delete_topic(topic)


KILLS = {
    LEAST: {"": 20, "P14": 0, "P15": 40, "P6": 60},
    MOST: {"": 20, "P14": 0, "P15": 20, "P6": 0},
}
"""By delivery: the points of the kills, in their order, and how many made rows are sent before.

Each round has 20. At least once, what is not committed is sent with the next round (again). At most
once, what is committed and not sent is lost.
"""


@pytest.mark.thorough
@pytest.mark.kill
@pytest.mark.parametrize("delivery", KILLS)
def test_a_killed_driver_leaves_what_is_promised_of_made_rows(
    lake: Lake, rivermouth_spark: SparkSession, delivery: str
) -> None:
    source, sink = f"own-kill-{delivery}", f"own-kill-{delivery}-out"
    lake.topic(source, 2)
    lake.topic(sink)
    lake.configure(p=own(sending(source, sink, delivery=delivery), "even_items"))
    for point, expected in KILLS[delivery].items():
        before = len(ids(lake, sink))
        produce(lake, source, 40)
        failpoints = f"{point}=kill" if point else ""
        with lake.driver("p", spark=rivermouth_spark, failpoints=failpoints) as driver:
            said = said_by(driver)
        assert driver.returncode == (-signal.SIGKILL if point else 0), said
        assert len(ids(lake, sink)) - before == expected, point
    went_well(lake.run(rivermouth_spark, "p"))

    proof, found = proved(lake), ids(lake, sink)
    assert proof["ok"], proof
    if delivery == LEAST:
        assert (len(found), len({*found}), proof["repeated"]) == (120, 80, 40)
        assert proof["not_checked"] == {"rows_of_own_code": 80, "records_left_out": 80}
    else:
        assert (len(found), len({*found})) == (40, 40)
        assert proof["not_checked"] == {"rows_of_own_code": 40, "records_not_in_the_sink": 120}
