"""Which rows are read by a verification that begins after an entry: a condition in SQL.

Each kind of warehouse skips by it the files whose statistics say that no row of them fulfils it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rivermouth.verify.ledger.log import Ledger

_EACH = 32
"""Up to so many partitions the condition names each; above, only their smallest position."""


def beginning(ledger: Ledger, offset: str) -> str | None:
    """What holds for all rows from the first verified offsets on; None: all rows are read.

    It holds for a row without coordinates too, and where there are many partitions for more rows
    than are wanted. ``offset`` is the column with the offset of a record; topic and partition are
    beside it.
    """
    if ledger.since is None:
        return None
    wanted = [*_wanted(ledger, offset)]
    struct, dot, _ = offset.rpartition(".")
    unknown = [f"{struct}{dot}{name} IS NULL" for name in ("topic", "partition", "offset")]
    return " OR ".join((*unknown, *wanted))


def _wanted(ledger: Ledger, offset: str) -> Iterator[str]:
    position = ledger.since.position if ledger.since is not None else {}
    struct, dot, _ = offset.rpartition(".")
    partition, topic = f"{struct}{dot}partition", f"{struct}{dot}topic"
    numbers: dict[str, list[int]] = {}
    for name, number in position:
        numbers.setdefault(name, []).append(number)
    # What no entry knows would be wrong, so it is looked at.
    whole = all(sorted(each) == [*range(len(each))] for each in numbers.values())
    if not whole or len(position) > _EACH:
        yield f"{offset} >= {min(position.values(), default=0)}"
    else:
        for (name, number), at in sorted(position.items()):
            yield f"({topic} = '{name}' AND {partition} = {number} AND {offset} >= {at})"
        for name, known in sorted(numbers.items()):
            yield f"({topic} = '{name}' AND {partition} > {max(known)})"
    later = {name for each in ledger.effective for name in each.topics} - {*numbers}
    yield from (f"{topic} = '{name}'" for name in sorted(later))
