"""Commits to a log in a real bucket: one of those that race stands, whatever becomes of answers."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from itertools import islice

import pytest

from rivermouth.errors import LedgerBroken, LogUnreadable
from rivermouth.local.s3 import LocalS3
from rivermouth.storage.store import STORE_FAULTS, Store
from rivermouth.warehouse.delta.actions import Commit, schema_of
from rivermouth.warehouse.delta.creation import creation
from rivermouth.warehouse.delta.log import DeltaLog, path_of
from tests.stores.lake import lake_in
from tests.stores.proxy import Fault, Proxy, Trouble, between

pytestmark = pytest.mark.slow

COMMIT = "PUT commit"
STANDS = (Fault.UNANSWERED, Fault.LATE, Fault.BUSY_AFTER, Fault.CUT, Fault.SLOW)
"""What happens to a request that arrives all the same."""
NOTHING = (Fault.LOST, Fault.BUSY, Fault.MANY, Fault.CONFLICT)


@pytest.fixture(scope="module")
def proxy(rivermouth_store: LocalS3) -> Iterator[Proxy]:
    with between(rivermouth_store.port) as made:
        yield made


@pytest.fixture
def store(rivermouth_store: LocalS3, proxy: Proxy) -> Store:
    return lake_in(rivermouth_store, str(uuid.uuid4()), proxy.endpoint).below("t")


def made(store: Store) -> DeltaLog:
    log = DeltaLog(store)
    assert log.commit(creation(schema_of([("n", "INT")]), {}))
    return log


def said(store: Store) -> list[str]:
    """What each commit says after the first, read without the proxy's troubles."""
    log = DeltaLog(store)
    records = [*log.commits()]
    return [str(each.user_metadata) for each in records[1:]]


def test_what_a_broken_look_has_asked_ahead_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = made(store)
    log.follow()

    def does_not_answer(version: int) -> bool:
        raise LogUnreadable("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(log, "_has", does_not_answer)
        with pytest.raises(LogUnreadable):
            log.follow()
    other = DeltaLog(store)
    other.follow()
    assert other.commit(Commit("WRITE", said="of another"))
    assert [each.user_metadata for each in log.commits_after(0)] == ["of another"]


def test_a_long_log_is_asked_ahead_and_what_is_wrong_counts_only_where_somebody_comes_to_it(
    store: Store, proxy: Proxy
) -> None:
    log = made(store)
    for each in range(1, 200):
        store.put(path_of(each), b'{"commitInfo":{"userMetadata":"%d"}}' % each)
    store.put(path_of(180), b"torn")
    with proxy.troubled(Trouble(delay_s=0.05)):
        began = time.monotonic()
        found = [each.version for each in islice(log.commits_after(0), 179)]
        seconds = time.monotonic() - began
    assert found == [*range(1, 180)]
    assert seconds < 179 * 0.05 / 4
    with pytest.raises(LedgerBroken):
        [*log.commits_after(170)]


@pytest.mark.short(("fault",), {(Fault.UNANSWERED,), (Fault.CONFLICT,)})
@pytest.mark.parametrize("fault", [*STANDS, *NOTHING], ids=lambda each: each.value)
def test_a_commit_whose_request_meets_a_fault_stands_once_or_is_known_to_be_unknown(
    store: Store, proxy: Proxy, fault: Fault
) -> None:
    log = made(store)
    with proxy.troubled(Trouble(strikes=((COMMIT, 1, fault.value),))):
        try:
            assert log.commit(Commit("WRITE", said="ours"))
        except STORE_FAULTS:
            pass  # nobody knows what became of it: who asks next finds out
        else:
            assert said(store) == ["ours"]
    fresh = DeltaLog(store)
    fresh.follow()
    fresh.commit(Commit("WRITE", said="next"))
    assert said(store) in (["ours", "next"], ["next"])


def test_a_commit_after_anothers_is_refused_also_where_its_answer_is_lost(
    store: Store, proxy: Proxy
) -> None:
    one, other = made(store), DeltaLog(store)
    other.follow()
    assert one.commit(Commit("WRITE", said="first"))
    with proxy.troubled(Trouble(strikes=((COMMIT, 1, Fault.UNANSWERED.value),))):
        assert not other.commit(Commit("WRITE", said="second"))
    assert said(store) == ["first"]


@pytest.mark.thorough
def test_of_commits_that_race_none_is_lost_and_none_is_doubled(store: Store, proxy: Proxy) -> None:
    made(store)
    told = list[str]()

    def write(name: int) -> None:
        log, number = DeltaLog(store), 0
        while number < 5:
            try:
                log.follow()
                mark = f"{name}-{number}"
                if mark in said(store) or log.commit(Commit("WRITE", said=mark)):
                    told.append(mark)
                    number += 1
            except (*STORE_FAULTS, LogUnreadable):
                continue

    threads = [threading.Thread(target=write, args=(each,)) for each in range(4)]
    with proxy.troubled(Trouble(seed="race", rate=0.02, commits=0.3)):
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert sorted(said(store)) == sorted(told)
    assert len(told) == 20
