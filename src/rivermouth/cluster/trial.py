"""Whether executors write where the driver sees it: a folder may be another one on each machine.

It is tried before the first batch, so that the message says what is wrong. Executors may come
later: so each batch looks for its files before its commit names them.
"""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyspark.sql import SparkSession

from rivermouth.errors.store import StoreRefused
from rivermouth.spark.errors import FAULTS, translate
from rivermouth.storage.lake import Lake
from rivermouth.storage.store import STORE_FAULTS, Store

_TRYING = threading.Lock()
_TASKS_OF_A_CORE = 2
_TOLD = "host STRING, name STRING"


def see_one_place(session: SparkSession, lake: Lake) -> None:
    """See that what tasks write in a folder is there for the driver; once for a session.

    Nothing is left there. Raises StoreRefused, and what ``translate`` makes of a task that fails.
    """
    with _TRYING:  # pipelines of one run begin together
        _tried(session, lake)


@cache
def _tried(session: SparkSession, lake: Lake) -> None:
    place = lake.below("rivermouth", "trial", str(uuid.uuid4()))
    tasks = _TASKS_OF_A_CORE * session.sparkContext.defaultParallelism
    try:
        rows = session.range(0, tasks, 1, tasks).mapInArrow(_Writes(place), _TOLD)
        told = [(str(each["host"]), str(each["name"])) for each in rows.collect()]
        there = {*place.names("")}
    except FAULTS as fault:
        raise translate(fault, lake.url) from fault
    finally:
        with suppress(*STORE_FAULTS):
            place.delete(place.names(""))
    unseen = sorted({host for host, name in told if name not in there})
    if unseen:
        found = f"what tasks on {', '.join(unseen)} wrote is not there"
        raise StoreRefused.not_shared(lake.url, found)


@dataclass(frozen=True)
class _Writes:
    """For ``mapInArrow``: writes one object in ``place``, and tells on which machine."""

    place: Store

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            name = str(uuid.uuid4())
            self.place.put(name, b"")
            yield pa.RecordBatch.from_pydict({"host": [socket.gethostname()], "name": [name]})
