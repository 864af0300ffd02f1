"""What a Delta log says of its table: the state of one version, read from the newest checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rivermouth.errors import LedgerBroken
from rivermouth.protocol.ways import WRITER_FEATURES, Definition
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Action, AddFile, of_lines

LOG = "_delta_log"
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.[0-9a-f-]{36})?"
    r"\.(?:parquet|json)"
)
_COMMIT = len(f"{0:020d}.json")
"""So many characters has the name of a commit."""
_FACTS = ("txn", "metaData", "protocol", "sidecar", "domainMetadata")
_CLUSTERING = "delta.clustering"


@dataclass
class TableState:
    """What a log says of its table up to ``version``; -1: nothing yet.

    ``files`` are the data files in it, by path and vector (``AddFile.key``); None: nobody asks for
    them. ``former`` are those that were removed as far as the log still tells it, each with the
    time in ms since 1970; None likewise. ``txns`` are the newest versions of each application;
    ``protocol`` and ``metadata`` the newest actions. ``clusters`` are the columns that the table is
    clustered by.
    """

    version: int = -1
    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: dict[tuple[str, str], AddFile] | None = None
    former: list[tuple[AddFile, int]] | None = None
    txns: dict[str, int] = field(default_factory=dict)
    clusters: tuple[tuple[str, ...], ...] = ()

    def take(self, version: int, actions: Iterable[Action]) -> None:
        """Become what the table is after ``version``, which says ``actions``."""
        for each in actions:
            for kind, said in each.items():
                self._take(kind, said)
        self.version = version

    def _take(self, kind: str, said: Mapping[str, Any]) -> None:
        if kind == "add" and self.files is not None:
            file = AddFile.of(said)
            self.files[file.key] = file
        elif kind == "remove" and self.files is not None:
            file = AddFile.of(said)
            self.files.pop(file.key, None)
            if self.former is not None:
                self.former.append((file, int(said.get("deletionTimestamp") or 0)))
        elif kind == "txn":
            self.txns[said["appId"]] = int(said["version"])
        elif kind == "protocol":
            self.protocol = said
        elif kind == "metaData":
            self.metadata = said
        elif kind == "domainMetadata" and said["domain"] == _CLUSTERING:
            told = {} if said.get("removed") else json.loads(said["configuration"])
            self.clusters = tuple(map(tuple, told.get("clusteringColumns") or ()))

    @property
    def current(self) -> dict[str, AddFile]:
        """The data files in it, by path; none where nobody asks for them."""
        return {each.path: each for each in (self.files or {}).values()}

    @property
    def definition(self) -> Definition:
        """What it says of the table itself."""
        said, metadata = self.protocol, self.metadata
        listed = {*(said.get("readerFeatures") or ()), *(said.get("writerFeatures") or ())}
        writer = int(said["minWriterVersion"])
        return Definition(
            reader=int(said["minReaderVersion"]),
            writer=writer,
            features=frozenset(listed if writer == WRITER_FEATURES else ()),
            properties=dict(metadata.get("configuration") or {}),
            schema=json.loads(metadata["schemaString"]),
            partitions=tuple(metadata.get("partitionColumns") or ()),
            clusters=self.clusters,
        )

    def kinds(self) -> Iterator[str]:
        """The kinds of actions that it takes."""
        yield from _FACTS
        if self.files is not None:
            yield "add"
        if self.former is not None:
            yield "remove"


@dataclass(frozen=True)
class LogTail:
    """The end of a log: ``checkpoint`` is the version of the newest whole one (-1: none), in the
    files ``parts``. ``versions`` are those of commits, in order: all after it, and some before.
    """

    checkpoint: int
    parts: tuple[str, ...]
    versions: tuple[int, ...]

    @property
    def hole(self) -> tuple[int, int] | None:
        """A version whose commit is missing, and the one that is there instead.

        The first ones may be gone, once a checkpoint stands for them.
        """
        versions = self.versions
        if not versions:
            return None
        first = min(versions[0], self.checkpoint + 1)
        if versions[-1] - first + 1 == len(versions):
            return None
        expected = enumerate(versions, first)
        return next((at, found) for at, found in expected if at != found)


def tail_of(store: Store) -> LogTail:
    """The end of the log in a store. Nothing there grows with what is before a checkpoint, where
    the store can begin to list at a name.
    """
    hint = _hint(store)
    tail = listed(store.names(LOG, f"{hint:020d}" if hint >= 0 else ""))
    # A hint may be as old as one likes: then what it names is cleaned up, and maybe what followed.
    return listed(store.names(LOG)) if hint >= 0 and tail.checkpoint < hint else tail


def _hint(store: Store) -> int:
    """The version of a checkpoint that ``_last_checkpoint`` names; -1: none."""
    content = store.read(f"{LOG}/_last_checkpoint")
    with suppress(ValueError, LookupError, TypeError):
        return int(json.loads(content or b"{}")["version"])
    return -1


def listed(names: Sequence[str]) -> LogTail:
    """The end of a log by the names of its files: of all, or of those from a checkpoint on."""
    checkpoint, parts = newest_checkpoint(names)
    return LogTail(checkpoint, tuple(parts), tuple(versions_of(names)))


def checkpointed(store: Store, state: TableState, tail: LogTail) -> TableState:
    """The state at the checkpoint of a tail, taken by an empty one, which it stays where there is
    none.

    Raises LedgerBroken for a checkpoint that is torn or gone.
    """
    kinds = [*state.kinds()]
    for name in tail.parts:
        try:
            state.take(tail.checkpoint, _actions_of(store, f"{LOG}/{name}", kinds))
        except (pa.ArrowException, KeyError, TypeError, ValueError) as fault:
            where = f"{store.where}/{LOG}/{name}"
            what = "the log cannot be read"
            raise LedgerBroken(what, where=where, found=repr(fault)) from fault
    return state


def versions_of(names: Iterable[str]) -> list[int]:
    """The versions whose commits are among these names of files, in order."""
    those = (name for name in names if len(name) == _COMMIT and name.endswith(".json"))
    return sorted(int(name[:20]) for name in those if name[:20].isdecimal())


def newest_checkpoint(names: Iterable[str]) -> tuple[int, list[str]]:
    """The version of the newest whole checkpoint among these names, and its parts; -1: none."""
    found: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if ".checkpoint" in name and (match := _CHECKPOINT.fullmatch(name)):
            parts = int(match["parts"] or 1)
            found.setdefault((int(match[1]), parts), []).append(name)
    whole = {key: each for key, each in found.items() if key[1] == 1 or len(each) == key[1]}
    if not whole:
        return -1, []
    newest = max(whole)
    # Of several that are whole by themselves each says the same.
    return newest[0], sorted(whole[newest])[: newest[1]]


def _actions_of(store: Store, path: str, kinds: Sequence[str]) -> Iterator[Action]:
    """The actions in a part of a checkpoint, and in the files that it names beside it."""
    content = store.read(path)
    if content is None:
        raise ValueError("the checkpoint is gone")
    found = of_lines(content) if path.endswith(".json") else _rows(content, kinds)
    for each in found:
        if "add" in kinds and "sidecar" in each:
            name = str(each["sidecar"]["path"]).rpartition("/")[2]
            yield from _actions_of(store, f"{LOG}/_sidecars/{name}", kinds)
        else:
            yield each


def _rows(content: bytes, asked: Sequence[str]) -> Iterator[Action]:
    with pq.ParquetFile(pa.BufferReader(content)) as parquet:
        kinds = [each for each in asked if each in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(columns=kinds):
            for kind in kinds:
                for said in batch.column(kind).drop_null().to_pylist():
                    yield {kind: said}
