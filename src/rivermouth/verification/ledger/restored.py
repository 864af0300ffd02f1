"""What stands of a log's commits: a RESTORE takes back what came after the version it leads to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rivermouth.verification.ledger.entry import Commit

Item = TypeVar("Item")


@dataclass(frozen=True)
class _Node(Generic[Item]):
    """An item and those before it: a list that branches at a RESTORE."""

    item: Item
    before: _Node[Item] | None = field(repr=False)


class Restorable(Generic[Item]):
    """Items in the order of their commits, as they were at any version."""

    def __init__(self) -> None:
        self._newest: _Node[Item] | None = None
        self._versions: list[int] = []
        self._nodes: list[_Node[Item] | None] = []

    def add(self, item: Item) -> None:
        """Put an item behind those that stand."""
        self._newest = _Node(item, self._newest)

    def clear(self) -> None:
        """Nothing stands any more."""
        self._newest = None

    def note(self, version: int, *, empty: bool = False) -> None:
        """A RESTORE to this version leads to what stands now; ``empty``: it leads to nothing."""
        self._versions.append(version)
        self._nodes.append(None if empty else self._newest)

    def restore(self, version: int) -> None:
        """Go back to a version; to nothing where it is before all that were noted."""
        reached = bisect_right(self._versions, version)
        self._newest = self._nodes[reached - 1] if reached else None

    @property
    def newest(self) -> Item | None:
        """The last item that stands."""
        return None if self._newest is None else self._newest.item

    def items(self) -> tuple[Item, ...]:
        """All that stand, in order."""
        found, node = list[Item](), self._newest
        while node is not None:
            found.append(node.item)
            node = node.before
        return tuple(reversed(found))


def restored_version(commit: Commit) -> int | None:
    """The version that a RESTORE leads to; None where its commit does not tell it."""
    target = str((commit.info.get("operationParameters") or {}).get("version"))
    return int(target) if target.isdigit() else None


class DeletesOfOthers:
    """Takes the commits of a table in order; knows which DELETEs of others stand at the newest."""

    def __init__(self) -> None:
        self._standing = Restorable[tuple[int, int | None]]()

    def take(self, version: int, commit: Commit, *, empties: bool) -> None:
        """Add the next commit; ``empties``: it removes all rows, where it is not ours."""
        if any(app.startswith("rivermouth/") for app in commit.txns):
            return
        operation = str(commit.info.get("operation")).upper()
        if operation == "RESTORE":
            target = restored_version(commit)
            self._standing.restore(-1 if target is None else target)
        elif empties:
            self._standing.clear()
        elif operation == "DELETE":
            self._standing.add((version, _deleted_rows(commit.info.get("operationMetrics"))))
        else:
            return
        self._standing.note(version)

    def rows(self) -> dict[int, int | None]:
        """Those that stand, by version; each with its number of rows, where its commit tells it."""
        return dict(self._standing.items())


def _deleted_rows(metrics: Mapping[str, Any] | None) -> int | None:
    """Spark's name for it, and deltalake's."""
    names = ("numDeletedRows", "num_deleted_rows")
    found = (str((metrics or {}).get(name)) for name in names)
    return next((int(each) for each in found if each.isdigit()), None)
