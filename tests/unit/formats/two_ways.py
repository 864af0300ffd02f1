"""Whether both ways of the strict decoder give the same; a campaign if it is run.

python -m tests.unit.formats.two_ways [--records 1000000] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import random
import warnings
from collections import Counter
from functools import partial
from itertools import zip_longest
from typing import get_args

import numpy as np
import pyarrow as pa

from rivermouth.config.columns import parse_columns
from rivermouth.formats.arrow import NO_FIELD, Decoded
from rivermouth.formats.strict_json.chunk import Texts
from rivermouth.formats.strict_json.columns import ReadAs
from rivermouth.formats.strict_json.decoder import BAD, StrictJson, can_compile, decode_at_once
from rivermouth.formats.strict_json.document import parse, read
from rivermouth.formats.strict_json.guards import as_text
from rivermouth.formats.strict_json.layout import read_by_layout
from rivermouth.formats.strict_json.scalars import Bad
from rivermouth.formats.strict_json.types import JsonSettings, Leniency, Unit
from rivermouth.formats.strict_json.values import decode_one_by_one, without_field
from tests.unit.formats.broken_records import broken
from tests.unit.formats.made_records import ddl, document, producer

_LENIENT: tuple[Leniency, ...] = get_args(Leniency)
_UNITS: tuple[Unit | None, ...] = (None, None, None, "s", "ms", "us", "ns")


def chunk(
    dice: random.Random, records: int, alike: bool = False
) -> tuple[StrictJson, list[bytes | None]]:
    """A decoder and values for it. ``alike``: most are laid out alike."""
    settings = JsonSettings(
        dice.choice(_UNITS),
        dice.random() < 0.2,
        frozenset(dice.sample(_LENIENT, dice.choice((0, 0, 0, 0, 1, 2)))),
    )
    columns = ddl(dice, maps=not alike and dice.random() < 0.1, arrays=not alike)
    decoder = StrictJson.of(parse_columns(columns), settings)
    wild, harm = dice.choice((0, 0, 0.01, 0.05, 0.3)), dice.choice((0, 0.01, 0.01, 0.05, 0.3))
    values: list[bytes | None] = []
    row = pa.struct(list(decoder.schema))
    make = producer(dice, row) if alike else partial(document, dice, row)
    for _ in range(records):
        value = make(wild).encode()
        values.append(broken(dice, value) if dice.random() < harm else value)
    if dice.random() < 0.3:
        values[dice.randrange(records)] = dice.choice((None, b""))
    return decoder, values


def differences(decoder: StrictJson, values: list[bytes | None]) -> list[str]:
    """What the compiled way gives otherwise than the exact way; nothing if all is well."""
    got = decoder.decode(pa.array(values, pa.binary()))
    got.rows.validate(full=True)
    expected = exactly(decoder, values)
    found: list[str] = []
    pairs = zip(rows(got), rows(expected), values, strict=True)
    for one, other, value in pairs:
        if one != other:
            found.append(f"{value!r}: {one} instead of {other}; {decoder}")
    return found


def exactly(decoder: StrictJson, values: list[bytes | None]) -> Decoded:
    """The same by the exact way alone."""
    row = pa.struct(list(decoder.schema))
    there = [each for each in values if each]
    decoded, reasons = decode_one_by_one(there, row, decoder.settings)
    places = iter(range(len(there)))
    order = pa.array([next(places) if each else None for each in values], pa.int64())
    found = Decoded.of(decoded.take(order), pa.array(reasons, pa.string()).take(order), BAD)
    good = ((at, each) for at, each in enumerate(values) if each and found.rows[at].is_valid)
    strange = ((at, without_field(each, row, decoder.settings)) for at, each in good)
    bad = {at: (NO_FIELD, why) for at, why in strange if why is not None}
    return found.with_faults(bad)


def rows(decoded: Decoded) -> list[tuple[str, str | None]]:
    """Each row spelt out, so that -0.0 is not 0.0, and its reason."""
    spelt = map(repr, decoded.rows.to_pylist())
    return list(zip_longest(spelt, decoded.reasons.to_pylist()))


def parsers_differ(value: bytes) -> bool:
    """Whether the two parsers of one document give different members, or one alone refuses."""
    text = value.decode("utf-8", "replace").strip(" \t\r\n")
    try:
        quick: object = read(text.encode(), spelt=False)
    except Bad as bad:
        quick = None
        if "surrogate" in bad.reason:
            return False
    try:
        slow: object = parse(text)
    except Bad:
        slow = None
    return repr(quick) != repr(slow)


def rows_by_way(decoder: StrictJson, values: list[bytes | None]) -> Counter[str]:
    """How many rows come from the compiled way, and how many records are read as laid out alike."""
    row = pa.struct(list(decoder.schema))
    if not can_compile(row, decoder.settings):
        return Counter()
    given = as_text(pa.array([each or b"" for each in values], pa.binary()))
    texts = Texts(given, np.arange(len(given)))
    narrow = ReadAs(decoder.settings.unit is not None, wide=False).kind(row)
    ways = {
        "compiled": decode_at_once(texts, row, decoder.settings),
        "alike": read_by_layout(texts, narrow)[0],
    }
    return Counter({name: sum(len(each.found) for each in way) for name, way in ways.items()})


def campaign(records: int, seed: int) -> Counter[str]:
    """Counts records, bad ones, and those of each way. Raises AssertionError for a difference."""
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    number = 0
    while counts["records"] < records:
        # Long chunks are parsed in several portions, or by their layout.
        number, alike = number + 1, dice.random() < 0.1
        size = 2_500 if alike else dice.choice((20, 200, 200, 200, 200, 1500))
        decoder, values = chunk(dice, size, alike)
        found = differences(decoder, values)
        assert not found, f"chunk {number}: {len(found)} differ, first: {found[0]}"
        unlike = [value for value in values[:20] if value and parsers_differ(value)]
        assert not unlike, f"chunk {number}: the parsers differ on {unlike[0]!r}"
        reasons = decoder.decode(pa.array(values, pa.binary())).reasons
        counts["records"] += len(values)
        counts["bad"] += len(values) - reasons.null_count
        counts += rows_by_way(decoder, values)
    return counts


def main() -> None:
    """Run a campaign and say what it saw; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("error")
    total: Counter[str] = Counter()
    for number, start in enumerate(range(0, given.records, 50_000)):
        counts = campaign(min(50_000, given.records - start), given.seed * 1_000_003 + number)
        print(number, dict(counts), flush=True)
        total += counts
    print(json.dumps({"seed": given.seed, **total, "differences": 0}))  # one ends it before


if __name__ == "__main__":
    main()
