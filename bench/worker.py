"""One peer of the benchmarks, in its own process with its own warm JVM.

It reads one JSON order per line on standard input and answers with one line of JSON. The roles are

- ``ours``: the product, as in `rivermouth run`;
- ``tuned``: the native Delta sink with our session and reader settings;
- ``stock``: that sink with Spark's defaults;
- ``foreach_batch``: an append in foreachBatch, with our session and reader settings;
- ``by_hand``: totals by a MERGE in foreachBatch, with these settings;
- ``merge_by_hand``: the newest row of each key, likewise;
- ``loop``: a plain loop in Python, without a JVM.

An order with ``role`` is for another one in the same session; ``nothing``, ``one_row`` and
``bare`` are roles of orders only.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from by_spark import bare, by_hand, foreach_batch, merge_by_hand, one_row, stock, tuned
from loop import loop
from ours import nothing, ours
from pyspark.sql import SparkSession

from rivermouth.local.machine import heap_settings, memory_mb
from rivermouth.local.session import start_session

Order = Mapping[str, Any]
Answer = Callable[[SparkSession, Order, Path], Mapping[str, Any]]

IN_SPARK: Mapping[str, Answer] = {
    each.__name__: each
    for each in (
        *(ours, nothing, tuned, stock),
        *(foreach_batch, by_hand, merge_by_hand, one_row, bare),
    )
}
_STOCK = {"spark.driver.memory": "2g", "spark.ui.enabled": "true"}


def serve(answer: Callable[[Order, Path], Mapping[str, Any]]) -> None:
    """Answer orders until standard input ends."""
    for line in sys.stdin:
        order = json.loads(line)
        table = Path(order["table"])
        table.parent.mkdir(parents=True, exist_ok=True)
        print(json.dumps(answer(order, table)), flush=True)


def in_spark(role: str, session: SparkSession, order: Order, table: Path) -> Mapping[str, Any]:
    """The answer to one order."""
    return IN_SPARK[order.get("role", role)](session, order, table)


def main(role: str, partitions: int) -> None:
    """Start what the role needs, and serve."""
    if role == "loop":
        serve(loop)
        return
    scratch = Path(tempfile.mkdtemp(prefix="rivermouth-bench-"))
    session = start_session(
        scratch,
        _STOCK if role == "stock" else heap_settings([partitions], memory_mb()),
        tuned=role != "stock",
        **({"java_options": ""} if role == "stock" else {}),
    )
    serve(partial(in_spark, role, session))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
