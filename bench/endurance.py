"""What must not grow: with the history, with the partitions, with one bad record, with the rows.

    python -m bench.endurance [--only start|stored|entries|batch|bad|verify] [--rounds 3] [--small]

Each ratio is to a baseline in the same run, in turns; medians over the rounds. Progress is told on
standard error. The last line is JSON with these figures:

- ``start_s_1k``, ``start_s_100k``: how long the product takes to open a pipeline whose table has so
  many commits, in a new process each time, from the call with a Spark session to the open pipeline;
- ``start_mb_100k``: the most memory that the driver's Python has had then, without its JVM;
- ``stored_…``: the same where the table lies in an object store, 20 ms a request;
- ``entry_bytes_2000``: the entry of a batch that moves 2,000 partitions, whose numbers are large;
- ``batch_ratio_2000``: the time of a batch over 2,000 partitions, divided by that over 4;
- ``bad_record_ratio``: the time of a batch with one bad record, divided by that of a clean one;
- ``verify_mb``, ``verify_s_per_m``: the memory of ``verify``, and its time per million records.

``--small`` makes everything small: it shows that the program works, and its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bids import bid
from long_log import lengthen, newest_entry
from measured import Figures, Sizes, compared, drained, fill_topic, order, say
from peer import Peer, peak_mb

from rivermouth.local.broker import Broker
from rivermouth.local.s3 import BUCKET, LocalS3
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.testing import produce
from tests.stores.proxy import Trouble, between

SMALL = Sizes(1, 20, 200, 3, 20_000, 2, 4, 40, 100_000)


@dataclass(frozen=True)
class _Place:
    """Where the tables of a configuration lie: as files below ``files``, and what it says."""

    files: Path
    says: Mapping[str, Any] = field(default_factory=dict)


def start(sizes: Sizes, folder: Path) -> Figures:
    """Open pipelines with a short and with a long log, each in a new process."""
    return _started(sizes, folder, lambda topic: _Place(folder / topic))


def stored(sizes: Sizes, folder: Path) -> Figures:
    """The same in an object store, whose objects are files here."""
    with LocalS3() as store, between(store.port) as proxy:
        storage = {**store.options, "endpoint": proxy.endpoint}

        def place(topic: str) -> _Place:
            where = {"warehouse": f"{store.address}/{topic}", "storage": storage}
            return _Place(store.objects / BUCKET / topic, {"where": where})

        found = _started(sizes, folder, place, lambda: proxy.set(Trouble(delay_s=0.02)))
    return {f"stored_{name}": figure for name, figure in found.items()}


def _started(
    sizes: Sizes,
    folder: Path,
    place: Callable[[str], _Place],
    filled: Callable[[], object] = lambda: None,
) -> Figures:
    """``filled`` is called when the tables are there, before what is measured."""
    seconds: dict[int, list[float]] = {sizes.short_log: [], sizes.long_log: []}
    mb: list[float] = []
    with Broker(folder / "kafka") as broker:
        peer = Peer("ours")
        orders = {
            commits: _with_log(sizes, broker, peer, folder / f"bids-{commits}", commits, place)
            for commits in seconds
        }
        peer.close()
        filled()
        for turn in range(sizes.rounds):
            for commits in seconds if turn % 2 else reversed(seconds):
                answer = drained(orders[commits])
                seconds[commits].append(answer["startup"])
                if commits == sizes.long_log:
                    mb.append(answer["mb"])
                found = f"{answer['startup']:.2f} s, {answer['mb']:.0f} MB"
                say(f"start round {turn + 1}: {commits:,} commits, {found}")
    short, long = (statistics.median(each) for each in seconds.values())
    return {"start_s_1k": short, "start_s_100k": long, "start_mb_100k": max(mb)}


def _with_log(
    sizes: Sizes,
    broker: Broker,
    peer: Peer,
    folder: Path,
    commits: int,
    place: Callable[[str], _Place],
) -> dict[str, Any]:
    """The order to open a pipeline that has read all of its topic, in so many commits."""
    topic, partitions, lies = folder.name, sizes.log_partitions, place(folder.name)
    table = lies.files / "bronze" / "bids"
    drain = order(broker, topic, table, 100_000_000)
    began, value = time.monotonic(), bid(0, random.Random(7))

    def add(records: int) -> None:
        """Write so many records to each partition."""
        more = ((None, value, each % partitions) for each in range(records * partitions))
        produce(broker.bootstrap_servers, topic, more)

    fill_topic(broker, topic, partitions, partitions)
    peer.drain(drain)
    add(commits)
    lengthen(table, "bids", commits)
    add(1)
    peer.drain(drain)  # the offsets table catches up
    newest = newest_entry(table, "bids").entry.sequence
    say(f"start: a log of {newest:,} entries, after {time.monotonic() - began:.0f} s")
    return drain | {"table": str(folder / "bronze" / "bids"), **lies.says}


def entries(sizes: Sizes, folder: Path) -> Figures:
    """Write the entry of a batch that moves all partitions of a topic that is years old."""
    dice = random.Random(7)
    places = [TopicPartition("auctions.bids", number) for number in range(sizes.many)]
    until = {each: dice.randrange(10**9, 10**10) for each in places}
    spans = [dice.randrange(1, 2 * sizes.per_batch // sizes.many) for _ in places]
    moved = zip(places, spans, strict=True)
    entry = Entry(
        pipeline="bids",
        sequence=3_000_000,
        commit=str(uuid.UUID(int=dice.getrandbits(128))),
        cluster="mKHujqmnQEaNkqxg4zZ1aA",
        table=str(uuid.UUID(int=dice.getrandbits(128))),
        topics={"auctions.bids": "itigHxnaTK2XmX3iuQpQdw"},
        ranges=tuple(OffsetRange(each, until[each] - span, until[each]) for each, span in moved),
        position=Position(until),
        config={"table": "bronze.bids", "mode": "append", "keys": [], "key": None},
        epochs={each: dice.randrange(20, 40) for each in places},
        ends=Position({each: end + dice.randrange(1000) for each, end in until.items()}),
        base=3_000_000,
        rows=tuple(RowCounts(span - 1, 1) for span in spans),
    )
    return {"entry_bytes_2000": len(to_json(entry))}


def batch(sizes: Sizes, folder: Path) -> Figures:
    """Drain the same records from few and from many partitions."""
    topics = {f"{each}-partitions": each for each in (sizes.few, sizes.many)}
    # Else an index file takes 10 MB from the first record on.
    with Broker(folder / "kafka", settings={"log.index.size.max.bytes": "1048576"}) as broker:
        for topic, partitions in topics.items():
            fill_topic(broker, topic, partitions, sizes.per_batch * sizes.batches)
        few, many = topics
        return {"batch_ratio_2000": compared("batch", sizes, broker, folder, (few, many))}


def bad(sizes: Sizes, folder: Path) -> Figures:
    """Drain a topic, and the same topic with one bad record in the middle of each batch."""
    records = sizes.per_batch * sizes.batches
    with Broker(folder / "kafka") as broker:
        fill_topic(broker, "clean", sizes.few, records)
        fill_topic(broker, "one-bad", sizes.few, records, bad_every=sizes.per_batch)
        return {"bad_record_ratio": compared("bad", sizes, broker, folder, ("clean", "one-bad"))}


def verify(sizes: Sizes, folder: Path) -> Figures:
    """Verify a table that the product has filled, in a process of its own."""
    records = sizes.verify_records
    file = folder / "lake" / "rivermouth.yml"
    with Broker(folder / "kafka") as broker:
        fill_topic(broker, "bids", sizes.few, records)
        drained(order(broker, "bids", file.parent / "bronze" / "bids", 1_000_000))
        say(f"verify: {records:,} records are in the table")
        began, mb = time.monotonic(), 0.0
        command = [sys.executable, "-m", "rivermouth", "verify", str(file)]
        process = subprocess.Popen(command, stdout=sys.stderr)
        while process.poll() is None:
            mb = max(mb, peak_mb(process.pid))
            time.sleep(0.1)
        seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"verify ended with {process.returncode}")
    return {"verify_mb": mb, "verify_s_per_m": seconds / records * 1e6}


SECTIONS: Mapping[str, Callable[[Sizes, Path], Figures]] = {
    each.__name__: each for each in (start, stored, entries, batch, bad, verify)
}


def main() -> None:
    """Run the sections; print the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*SECTIONS])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--verify-records", type=int)
    asked = parser.parse_args()
    sizes = SMALL if asked.small else Sizes(asked.rounds)
    if asked.verify_records:
        sizes = replace(sizes, verify_records=asked.verify_records)
    figures: dict[str, float] = {}
    for name in [asked.only] if asked.only else SECTIONS:
        with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as folder:
            figures.update(SECTIONS[name](sizes, Path(folder)))
    print(json.dumps({name: round(each, 3) for name, each in figures.items()}))


if __name__ == "__main__":
    main()
