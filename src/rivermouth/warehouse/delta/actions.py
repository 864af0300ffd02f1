"""What one version of a Delta log says, as values: written as its JSON, and read from it.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Actions" and "Schema Serialization
Format".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any
from urllib.parse import quote, unquote

from rivermouth.warehouse.delta.vectors import Vector

_TIGHT, _LOOSE = '"tightBounds":true', '"tightBounds":false'

Action = Mapping[str, Mapping[str, Any]]
"""One line of a commit: the kind of the action, and what it says."""


@dataclass(frozen=True, eq=False)
class AddFile:
    """A data file of a table. ``path`` is below the table, as it is in the store.

    ``statistics`` is JSON, see ``warehouse.delta.statistics``. ``partition`` are the values of the
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
            dict(said["tags"]) if said.get("tags") else None,
        )

    @property
    def key(self) -> tuple[str, str]:
        """What identifies a logical file: the path, and its deletion vector."""
        return self.path, "" if self.vector is None else self.vector.key

    @property
    def elsewhere(self) -> bool:
        """Whether it, or its vector, does not lie in the folder of the table."""
        apart = self.path.startswith("/") or ":" in self.path.partition("/")[0]
        return apart or (self.vector is not None and self.vector.elsewhere)

    def marked(self, vector: Vector) -> AddFile:
        """The same with rows deleted: what is said of its least and greatest values stays right,
        but may be of deleted rows.
        """
        said = self.statistics
        if said is not None and _TIGHT in said:
            said = said.replace(_TIGHT, _LOOSE)
        elif said is not None and _LOOSE not in said:
            said = f"{said.rstrip().removesuffix('}')},{_LOOSE}}}"
        return replace(self, vector=vector, statistics=said)

    @cached_property
    def rows(self) -> int | None:
        """All its rows, deleted or not; None where nobody has noted it."""
        said = json.loads(self.statistics) if self.statistics else {}
        number = said.get("numRecords")
        return None if number is None else int(number)

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


_TOKEN = re.compile(r"`[^`]*`|[^\s<>(),:`]+|[<>(),:]")
_NAMES = {
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    **{each: each.lower() for each in ("BOOLEAN", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE")},
    **{each: each.lower() for each in ("TIMESTAMP", "TIMESTAMP_NTZ")},
}
_SQL = {name: word.lower() for word, name in _NAMES.items()}


def schema_of(columns: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The schema with these names and types, which are SQL text, normalised (``config.columns``).

    All may be null.
    """
    types = ((name, _type(_TOKEN.findall(text)[::-1])) for name, text in columns)
    return {"type": "struct", "fields": [_field(*each) for each in types]}


def in_sql(kind: str | Mapping[str, Any], mark: str = "") -> str:
    """A type as Spark shows it: ``bigint``, ``struct<a:int,b:array<string>>``.

    ``mark`` is written around names: with a back-quote the text can be read again.
    """
    if isinstance(kind, str):
        return _SQL.get(kind, kind)
    its = partial(in_sql, mark=mark)
    if kind["type"] == "struct":
        fields = (f"{mark}{each['name']}{mark}:{its(each['type'])}" for each in kind["fields"])
        return f"struct<{','.join(fields)}>"
    if kind["type"] == "array":
        return f"array<{its(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{its(kind['keyType'])},{its(kind['valueType'])}>"
    return str(kind["type"])


def leaves(kind: str | Mapping[str, Any]) -> int:
    """How many columns of Parquet a type has, where arrays and maps count as one."""
    if isinstance(kind, str) or kind["type"] != "struct":
        return 1
    return sum(leaves(each["type"]) for each in kind["fields"])


def _field(name: str, kind: str | dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _type(tokens: list[str]) -> str | dict[str, Any]:
    """Takes one type from the end of the tokens."""
    word = tokens.pop()
    if word == "DECIMAL":
        _, precision, _, scale, _ = (tokens.pop() for _ in range(5))
        return f"decimal({precision},{scale})"
    if word not in ("ARRAY", "MAP", "STRUCT"):
        return _NAMES[word]
    if word == "STRUCT":
        return {"type": "struct", "fields": _fields(tokens)}
    parts = []
    while tokens.pop() != ">":
        parts.append(_type(tokens))
    if word == "ARRAY":
        return {"type": "array", "elementType": parts[0], "containsNull": True}
    key, value = parts
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def _fields(tokens: list[str]) -> list[dict[str, Any]]:
    found = []
    while tokens.pop() != ">":
        name = tokens.pop().strip("`")
        tokens.pop()  # the colon
        found.append(_field(name, _type(tokens)))
    return found
