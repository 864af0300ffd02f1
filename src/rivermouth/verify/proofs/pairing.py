"""What Kafka shows of each key beside the rows of that key, a bounded part at a time.

Memory: keys are spread by hash over at most 1,024 files on disk, and one file at a time is
compared. A file of more than ``2 * Bounds.bucket`` records and rows, or of more than 64 MiB, is
spread again. So of a topic of any size no more than that is in memory, and four buffers of 32 MiB;
Python's values take a few times their bytes. Only what belongs to a single key is never split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rivermouth.verify.proofs.proof import Bounds, Workspace
from rivermouth.verify.proofs.spill import Buckets

_BUCKETS_MAX = 1024
_BUCKET_BYTES = 64 << 20
Items = Iterator[tuple[Any, tuple[Any, ...]]]
"""Keys, and the facts of each."""


def buckets(records: int, bounds: Bounds) -> int:
    """Over how many files the keys of so many records are spread."""
    return min(_BUCKETS_MAX, 1 + records // bounds.bucket)


def by_bucket(shown: Buckets, rows: Buckets, workspace: Workspace) -> Iterator[tuple[Items, Items]]:
    """Both sides of one bucket after the other; what is too much for one is split."""
    number, limit = len(shown.items), 2 * workspace.bounds.bucket
    for each in range(number):
        items = shown.items[each] + rows.items[each]
        parts = max(-(-items // limit), (shown.sizes[each] + rows.sizes[each]) // _BUCKET_BYTES)
        if parts <= 1:
            yield shown.take(each), rows.take(each)
            continue
        again = [
            Buckets(workspace.folder / f"{kind}-{each}", parts, skip=number)
            for kind in ("shown", "rows")
        ]
        for whole, split in zip((shown, rows), again, strict=True):
            for key, facts in whole.take(each):
                split.add(key, facts, size(facts))
        for part in range(parts):
            yield again[0].take(part), again[1].take(part)


def size(values: Iterable[Any]) -> int:
    """About how many bytes the texts of a row or change have."""
    return sum(
        len(each) if isinstance(each, (str, bytes)) else size(each)
        for each in values
        if isinstance(each, (str, bytes, tuple))
    )


def plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values whose text is plain text: a reader may give text that knows where it comes from."""
    return tuple(str(each) if isinstance(each, str) else each for each in values)
