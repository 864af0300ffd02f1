"""The bad records of some commits, by the code of what is wrong: read from the quarantine.

How many there are, the ledger tells. The newest files are read first, until all were found, and
not more of them than a page is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from rivermouth.errors import LedgerBroken, LogUnreadable
from rivermouth.report.series import Bad
from rivermouth.storage.store import STORE_FAULTS, Store
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.rows import live_rows

_FILES = 200
_LONGEST = 300
"""So many characters of a text from a record are shown."""
_CODES = pa.schema([("commit", pa.string()), ("code", pa.string())])
_WHOLE = pa.schema(
    [
        *_CODES,
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


@dataclass(frozen=True)
class Sample:
    """A bad record; ``key`` and ``value`` are text, cut where they are long."""

    place: str
    code: str
    reason: str
    key: str
    value: str


@dataclass
class Found:
    """How many bad records of each commit have which code, and some of them.

    ``problem`` says why some were not read; empty: all were.
    """

    codes: dict[str, Counter[str]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    problem: str = ""


def bad_records(store: Store, commits: Mapping[str, Bad], samples: int) -> Found:
    """Those of these commits, by their ids, in the quarantine of ``store``, with so many samples of
    the newest. Never raises for what is there.
    """
    found = Found()
    missing = sum(each.records for each in commits.values())
    if not missing:
        return found
    log = DeltaLog(store, files=True)
    try:
        log.follow()
        newest_first = sorted(log.state.current.values(), key=lambda each: -each.modified_ms)
        for file in newest_first[:_FILES]:
            for batch in live_rows(store, file, _WHOLE if samples else _CODES):
                missing -= _take(found, batch, commits, samples)
            if missing <= 0:
                break
    except (LogUnreadable, LedgerBroken) as fault:
        found.problem = str(fault)
    except (*STORE_FAULTS, pa.ArrowException) as fault:
        found.problem = f"{store.where} cannot be read: {fault!r}"
    if missing > 0 and not found.problem:
        found.problem = f"{missing:,} are not in the files of the quarantine that were read"
    return found


def _take(found: Found, batch: pa.RecordBatch, commits: Mapping[str, Bad], samples: int) -> int:
    """Add the rows of these commits; how many they are."""
    taken = 0
    pairs = zip(batch.column("commit").to_pylist(), batch.column("code").to_pylist(), strict=True)
    for row, (commit, code) in enumerate(pairs):
        if commit in commits:
            taken += 1
            found.codes.setdefault(commit, Counter())[str(code)] += 1
            if len(found.samples) < samples:
                found.samples.append(_sample(batch.slice(row, 1).to_pylist()[0]))
    return taken


def _sample(row: Mapping[str, object]) -> Sample:
    return Sample(
        f"{row['topic']}-{row['partition']}, offset {row['offset']}",
        str(row["code"]),
        _text(row["reason"]),
        _text(row["key"]),
        _text(row["value"]),
    )


def _text(value: object) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        return "null"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
