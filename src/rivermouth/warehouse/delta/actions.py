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
class AddFile:
    """A data file of a table. ``path`` is below the table, as it is in the store.

    ``statistics`` is JSON, see ``write.files.statistics``.
    """

    path: str
    size: int
    modified_ms: int
    statistics: str | None = None

    @staticmethod
    def of(said: Mapping[str, Any]) -> AddFile:
        """The one that an ``add`` or a ``remove`` names."""
        path, size = unquote(str(said["path"])), int(said.get("size") or 0)
        return AddFile(path, size, int(said.get("modificationTime") or 0), said.get("stats"))

    def action(self) -> Action:
        """The action by which it is in the table, and brings rows."""
        said: dict[str, Any] = {
            "path": quote(self.path, safe="/=:@+,!$&'()*;~-._"),
            "partitionValues": {},
            "size": self.size,
            "modificationTime": self.modified_ms,
            "dataChange": True,
        }
        if self.statistics is not None:
            said["stats"] = self.statistics
        return {"add": said}


@dataclass(frozen=True)
class Commit:
    """One version of a table, before it is made: data that can be printed and compared.

    ``operation`` and ``parameters`` are what others read in the history. ``said`` is the
    ``userMetadata``. ``txns`` are versions by application id. ``blind``: it was made without a look
    at the table's rows.
    """

    operation: str
    said: str | None = None
    txns: Mapping[str, int] = field(default_factory=dict)
    added: Sequence[AddFile] = ()
    metrics: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    blind: bool = False

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
            *(
                {"txn": {"appId": app, "version": version, "lastUpdated": now_ms}}
                for app, version in self.txns.items()
            ),
            *(each.action() for each in self.added),
        ]


def to_lines(actions: Iterable[Action]) -> bytes:
    """The file of a version: a line of JSON for each action."""
    lines = (json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in actions)
    return ("\n".join(lines) + "\n").encode()


def of_lines(content: bytes) -> list[Action]:
    """The actions of a version; none of an empty one. Raises ValueError."""
    # Not splitlines(): statistics hold text of the users, U+2028 for one.
    return [json.loads(line) for line in content.decode().split("\n") if line.strip()]
