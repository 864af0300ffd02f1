"""The producer's history: what it was promised must have been taken up, what failed must not.

JSON lines, each synced before the next: ``{"id", "op", "topic", "partition", "key", "value",
"phase", "offset", "txn"}``. ``phase`` is ``intent`` before the write, then ``ok`` (visible:
with its ``offset``, and for a transaction only once that is committed), ``fail`` (surely not
there) or ``info`` (nobody knows). ``key`` and ``value`` are text or null; bytes that are not
UTF-8 are written with surrogate escapes. A line without them means those of its intent.
``{"phase": "recreated", "topic", "topic_id"}`` says that a topic was deleted and created again:
what follows was written to the new one. What nobody had read of the old one is gone with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.checker.append import covers
from tests.faults.checker.digest import Digests, Integers, of_bytes
from tests.faults.checker.evidence import Place, later, real, shown
from tests.faults.checker.ledger import Node
from tests.faults.checker.records import Records
from tests.faults.checker.verdict import Fault, Finding, some


class History:
    """The outcomes in the file at ``path``; ``update`` reads the lines that are new."""

    def __init__(self, path: Path) -> None:
        self.problems: list[str] = []
        self._path = path
        self._read = 0
        self._pending: dict[int, tuple[Place, int]] = {}
        self._oks: dict[Place, list[tuple[int, int]]] = {}
        self._fails: dict[Place, set[int]] = {}
        self._names: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def update(self) -> None:
        """Read on to the last whole line."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # the producer was killed in the middle of it
                try:
                    self._take(json.loads(line))
                except (ValueError, LookupError, TypeError) as fault:
                    self.problems.append(f"byte {self._read}: {fault!r}")
                self._read += len(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        phase = line["phase"]
        if phase == "recreated":
            name, _ = later((str(line["topic"]), 0), len(self._ids) + 1)
            self._names[str(line["topic"])], self._ids[name] = name, str(line["topic_id"])
            return
        number = int(line["id"])
        if phase == "intent":
            self._pending[number] = (self._place(line), _raw(line))
            return
        if phase not in ("ok", "fail", "info"):
            raise ValueError(f"no such phase: {phase}")
        intent = self._pending.pop(number, None)
        told = (self._place(line), _raw(line)) if "value" in line else None
        place, raw = told or intent or (("", -1), 0)
        if phase == "ok":
            self._oks.setdefault(place, []).append((int(line["offset"]), raw))
        elif phase == "fail":
            self._fails.setdefault(place, set()).add(raw)

    def _place(self, line: Mapping[str, Any]) -> Place:
        """The partition, under the name that it has since its topic was created last."""
        topic = str(line["topic"])
        return self._names.get(topic, topic), int(line["partition"])

    def is_of(self, place: Place, topic_id: str) -> bool:
        """Whether a topic is the one that was written to under this name of its partition."""
        known = self._ids.get(place[0])
        return topic_id == known if known else topic_id not in self._ids.values()

    @property
    def places(self) -> list[Place]:
        """The partitions that were written to."""
        return sorted({*self._oks, *self._fails})

    def judge(
        self, place: Place, node: Node | None, meant: Sequence[Records], *, settled: bool
    ) -> Iterator[Finding]:
        """Look for the writes to one partition among its records; none: nothing took it up.

        ``meant`` are the records that its offsets have meant. Once ``settled``, each write must lie
        before the position, unless the topic is gone.
        """
        oks = np.array(self._oks.get(place, []), object).reshape(-1, 2)
        offsets, raw = oks[:, 0].astype(np.int64), oks[:, 1].astype(np.uint64)
        topic, partition = real(place)
        gone = place != (self._names.get(topic, topic), partition)
        places = [each.place for each in meant] if node is not None else []
        reached = max((node.reached.get(each, 0) for each in places if node), default=0)
        end = reached if settled else max((each.end for each in meant), default=1 << 62)
        unseen = (offsets >= end) & (not gone)
        if node is not None and meant:
            seen = offsets < min(node.starts.get(each, 0) for each in places)
            for each in meant:
                seen |= _seen(node, each, offsets, raw)
            unseen |= (offsets < reached) & ~seen
        for each in meant:
            yield from self._refused(place, each, raw)
        if unseen.any():
            found = some(sorted(offsets[unseen].tolist()))
            yield Finding(Fault.UNSEEN, shown(place), f"acknowledged, not there: {found}")

    def _refused(self, place: Place, records: Records, oks: Digests) -> Iterator[Finding]:
        """Records that the producer says were not written."""
        unsure = [raw for each, raw in self._pending.values() if each == place]
        fails = self._fails.get(place, set()) - {*oks.tolist(), *unsure}
        visible = np.isin(records.raw, np.array(sorted(fails), np.uint64))
        if visible.any():
            found = some(records.offsets[visible].tolist())
            what = f"visible, though the write failed: {found}"
            yield Finding(Fault.ABORTED_READ, shown(records.place), what)


def _seen(node: Node | None, records: Records, offsets: Integers, raw: Digests) -> Any:
    """Which writes are a record that an entry accounts for, or were there once."""
    expected = covers(node, records).expected
    at = records.find(offsets)
    there = at >= 0
    seen = np.zeros(len(offsets), np.bool_)
    seen[there] = expected[at[there]] & (records.raw[at[there]] == raw[there])
    dark = [records.is_dark(offset, offset + 1) for offset in offsets[~there].tolist()]
    seen[~there] = dark
    return seen


def _raw(line: Mapping[str, Any]) -> int:
    return of_bytes(_bytes(line["key"]), _bytes(line["value"]))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
