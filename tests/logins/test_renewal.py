"""What expires while a run goes on: tokens, and certificates whose files are replaced."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from tests.faults.outcomes import applied, check_proved, refusal, went_well
from tests.lake import Heard, bid, continuous
from tests.logins.conftest import GuardedLake
from tests.logins.guarded_broker import GuardedBroker
from tests.logins.token_server import CLIENT
from tests.logins.ways import section
from tests.processes import said_by
from tests.waiting import wait_for, wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

LIFE_S = 12
BRIEF_LIFE = timedelta(seconds=90)
"""Of a certificate: a busy machine needs a good part of it before the first record is read."""


def five(lake: GuardedLake, topic: str) -> None:
    lake.produce(topic, [(None, bid(n), 0) for n in range(5)])


def arrived(heard: Heard, records: int) -> bool:
    """Whether so many records are applied, or the run has ended."""
    return applied(heard) == records or bool(heard.ends)


@contextmanager
def short_lived(guarded: GuardedBroker) -> Iterator[None]:
    """Tokens live a few seconds, for as long as the block takes."""
    rules = guarded.tokens.rules
    before, rules.life_s = rules.life_s, LIFE_S
    try:
        yield
    finally:
        rules.life_s, rules.closed, rules.away = before, False, False


@contextmanager
def brief_certificate(guarded: GuardedBroker) -> Iterator[float]:
    """The client's certificate is soon no longer good; yields when that is, by the clock."""
    expires = time.monotonic() + BRIEF_LIFE.total_seconds() + 6
    guarded.authority.issue(CLIENT, BRIEF_LIFE)
    try:
        yield expires
    finally:
        guarded.authority.issue(CLIENT)


# Drivers of their own, here and below: clients of one JVM share a login and its token, however old,
# and after a refusal they ask again only ten seconds later.
def test_a_run_outlives_its_tokens(lake: GuardedLake, guarded: GuardedBroker) -> None:
    lake.topic("outlives")
    lake.log_in_by("oauth", "outlives")
    table, agents = lake.path("bronze.outlives"), guarded.tokens.rules.agents
    with short_lived(guarded), lake.driver("outlives", continuous=True) as driver:
        five(lake, "outlives")
        wait_for_rows(table, 5)
        agents.clear()
        ends = time.monotonic() + 3 * LIFE_S
        records = 5
        while time.monotonic() < ends:
            records += 5
            five(lake, "outlives")
            wait_for_rows(table, records)
            time.sleep(2)
        by_java = [each for each in agents if each.startswith("Java")]
        driver.terminate()
        said = said_by(driver)

    assert len(by_java) >= 2, f"Spark's client asked for new tokens: {said}"
    assert len(agents) - len(by_java) >= 2, "so did librdkafka"
    assert driver.returncode == 0, said
    assert said.count("opened outlives") == 1, said
    check_proved(lake, records=records)


def test_a_run_that_gets_no_new_token_ends_and_the_next_one_goes_on(
    lake: GuardedLake, guarded: GuardedBroker
) -> None:
    lake.topic("denied")
    lake.log_in_by("oauth", "denied")
    with short_lived(guarded), lake.driver("denied", continuous=True) as driver:
        five(lake, "denied")
        wait_for_rows(lake.path("bronze.denied"), 5)
        guarded.tokens.rules.closed = True
        ends = time.monotonic() + 20 * LIFE_S
        while driver.poll() is None and time.monotonic() < ends:
            five(lake, "denied")
            time.sleep(2)
        assert driver.poll() == 1, "a batch without a valid token did not stop the run"
        said = said_by(driver)
    assert any(f"FAILED {code}" in said for code in ("RM301", "RM303", "RM503")), said

    with lake.driver("denied") as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said
    check_proved(lake, records=len(lake.rows("bronze.denied")))


def test_a_run_waits_for_a_token_server_that_is_away(
    lake: GuardedLake, guarded: GuardedBroker
) -> None:
    lake.topic("awaited")
    lake.log_in(section("oauth", guarded), "awaited", retry_for="90s")
    table, rules = lake.path("bronze.awaited"), guarded.tokens.rules
    with short_lived(guarded), lake.driver("awaited", continuous=True) as driver:
        five(lake, "awaited")
        wait_for_rows(table, 5)
        rules.away = True
        five(lake, "awaited")
        time.sleep(3 * LIFE_S)  # all tokens are over by then
        rules.away = False
        five(lake, "awaited")
        wait_for_rows(table, 15)
        driver.terminate()
        said = said_by(driver)
    assert driver.returncode == 0, said
    assert "waits" in said, said
    check_proved(lake, records=15)


@pytest.mark.short(("way",), {("mtls",)})
@pytest.mark.parametrize("way", ["mtls", "mtls in one file"])
def test_a_run_goes_on_with_new_files_of_a_certificate(
    way: str, lake: GuardedLake, guarded: GuardedBroker, rivermouth_spark: SparkSession
) -> None:
    topic = way.replace(" ", "-")
    lake.topic(topic)
    with brief_certificate(guarded) as expires:
        lake.log_in(section(way, guarded), topic)
        with continuous(lake, rivermouth_spark, topic.replace("-", "_")) as heard:
            five(lake, topic)
            wait_for(lambda: arrived(heard, 5))
            assert not heard.ends, "the machine is too slow for this certificate"
            guarded.authority.issue(CLIENT)
            wait_for(lambda: len(heard.opens) == 2, "the run did not open again")
            time.sleep(max(0, expires - time.monotonic()))  # the first one is no longer good
            five(lake, topic)
            wait_for(lambda: arrived(heard, 10))
        went_well(heard)
        assert len(heard.opens) == 2
        check_proved(lake, records=10)


def test_a_certificate_that_expires_ends_the_run_and_a_new_one_goes_on(
    lake: GuardedLake, guarded: GuardedBroker, rivermouth_spark: SparkSession
) -> None:
    lake.topic("expired")
    with brief_certificate(guarded) as expires:
        lake.log_in_by("mtls", "expired")
        with continuous(lake, rivermouth_spark, "expired") as heard:
            five(lake, "expired")
            wait_for(lambda: arrived(heard, 5))
            assert not heard.ends, "the machine is too slow for this certificate"
            time.sleep(max(0, expires - time.monotonic()))
            five(lake, "expired")
            wait_for(lambda: bool(heard.ends))
        assert refusal(heard).exit_code == 1

    went_well(lake.run(rivermouth_spark, "expired"))
    check_proved(lake, records=10)
