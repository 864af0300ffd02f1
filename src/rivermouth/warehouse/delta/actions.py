"""What one version of a Delta log says, as values: written as its JSON, and read from it.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Actions".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

Action = Mapping[str, Mapping[str, Any]]
"""One line of a commit: the kind of the action, and what it says."""


@dataclass(frozen=True)
class Vector:
    """Where it is told which rows of a file are deleted: the ``deletionVector`` of an action.

    ``storage`` is ``u`` (``path`` is a prefix and a UUID in Z85), ``p`` (an absolute path), or
    ``i`` (the vector itself, in Z85). ``offset`` is where its length stands in the file; ``size``
    is that of magic and bitmap, in bytes; ``rows`` is how many rows it deletes.
    """

    storage: str
    path: str
    offset: int | None
    size: int
    rows: int

    @staticmethod
    def of(said: Mapping[str, Any]) -> Vector:
        """The one that an action names."""
        offset = said.get("offset")
        return Vector(
            str(said["storageType"]),
            str(said["pathOrInlineDv"]),
            None if offset is None else int(offset),
            int(said["sizeInBytes"]),
            int(said["cardinality"]),
        )

    def as_dict(self) -> dict[str, Any]:
        """The same as an action says it."""
        found: dict[str, Any] = {"storageType": self.storage, "pathOrInlineDv": self.path}
        if self.offset is not None:
            found["offset"] = self.offset
        return {**found, "sizeInBytes": self.size, "cardinality": self.rows}

    @property
    def key(self) -> str:
        """What tells this vector from others, as Delta compares files by it."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage}{self.path}{at}"


@dataclass(frozen=True, eq=False)
class AddFile:
    """A data file of a table. ``path`` is below the table, as it is in the store.

    ``statistics`` is JSON, see ``write.files.statistics``. ``partition`` are the values of the
    partition columns, as text. ``vector`` tells which of its rows are deleted.
    """

    path: str
    size: int
    modified_ms: int
    statistics: str | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    vector: Vector | None = None
    tags: Mapping[str, str] | None = None

    @staticmethod
    def of(said: Mapping[str, Any]) -> AddFile:
        """The one that an ``add`` or ``remove`` names."""
        vector = said.get("deletionVector")
        return AddFile(
            unquote(str(said["path"])),
            int(said.get("size") or 0),
            int(said.get("modificationTime") or 0),
            said.get("stats"),
            dict(said.get("partitionValues") or {}),
            None if vector is None else Vector.of(vector),
            None if said.get("tags") is None else dict(said["tags"]),
        )

    @property
    def key(self) -> tuple[str, str]:
        """What identifies a logical file: the path, and its deletion vector."""
        return self.path, "" if self.vector is None else self.vector.key

    def _said(self, *, changes: bool) -> dict[str, Any]:
        found: dict[str, Any] = {
            "path": quote(self.path, safe="/=:@+,!$&'()*;~-._"),
            "partitionValues": dict(self.partition),
            "size": self.size,
            "dataChange": changes,
        }
        if self.tags is not None:
            found["tags"] = dict(self.tags)
        if self.vector is not None:
            found["deletionVector"] = self.vector.as_dict()
        return found

    def added(self, *, changes: bool) -> Action:
        """The action by which it is in the table. ``changes``: it brings rows."""
        said = {**self._said(changes=changes), "modificationTime": self.modified_ms}
        return {"add": said if self.statistics is None else {**said, "stats": self.statistics}}

    def removed(self, at_ms: int, *, changes: bool) -> Action:
        """The action by which it is no longer in the table."""
        said = {**self._said(changes=changes), "deletionTimestamp": at_ms}
        return {"remove": {**said, "extendedFileMetadata": True}}


@dataclass(frozen=True)
class Commit:
    """One version of a table, before it is made: data that can be printed and compared.

    ``operation`` and ``parameters`` are what others read in the history. ``said`` is the
    ``userMetadata``. ``txns`` are versions by application id. A file of which rows were deleted is
    in ``removed`` as it was, and in ``added`` with its new vector. ``changes``: rows come or go;
    False for compaction. ``blind``: it was made without a look at the table's rows. ``definition``
    are actions ``protocol`` and ``metaData``, of a table that is made or altered.
    """

    operation: str
    said: str | None = None
    txns: Mapping[str, int] = field(default_factory=dict)
    added: Sequence[AddFile] = ()
    removed: Sequence[AddFile] = ()
    metrics: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    changes: bool = True
    blind: bool = False
    definition: Sequence[Action] = ()

    def actions(self, base: int | None, now_ms: int, engine: str) -> list[Action]:
        """What its version says. ``base`` is the version that it was planned on."""
        info: dict[str, Any] = {
            "timestamp": now_ms,
            "operation": self.operation,
            "operationParameters": dict(self.parameters),
            "operationMetrics": {name: str(each) for name, each in self.metrics.items()},
            "isolationLevel": "Serializable",
            "isBlindAppend": self.blind,
            "engineInfo": engine,
        }
        if base is not None:
            info["readVersion"] = base
        if self.said is not None:
            info["userMetadata"] = self.said
        return [
            {"commitInfo": info},
            *self.definition,
            *(
                {"txn": {"appId": app, "version": version, "lastUpdated": now_ms}}
                for app, version in self.txns.items()
            ),
            *(each.removed(now_ms, changes=self.changes) for each in self.removed),
            *(each.added(changes=self.changes) for each in self.added),
        ]


def to_lines(actions: Iterable[Action]) -> bytes:
    """The file of a version: a line of JSON for each action."""
    lines = (json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in actions)
    return ("\n".join(lines) + "\n").encode()


def of_lines(content: bytes) -> list[Action]:
    """The actions of a version; none of an empty one. Raises ValueError."""
    # Not splitlines(): statistics hold text of the users, U+2028 for one.
    return [json.loads(line) for line in content.decode().split("\n") if line.strip()]
