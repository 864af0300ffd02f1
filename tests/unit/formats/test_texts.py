"""Which values are no text: as Python says of each."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from rivermouth.formats.shredded.columns import Site
from rivermouth.formats.shredded.found import Spans
from rivermouth.formats.shredded.lanes import Bytes, Faults
from rivermouth.formats.shredded.texts import text

pytestmark = pytest.mark.unit

PARTS = [
    *(
        b"a",
        b"\xc3\xa9",
        b"\xe2\x82\xac",
        b"\xf0\x9f\x98\x80",
        b"\xed\x9f\xbf",
        b"\xf4\x8f\xbf\xbf",
    ),
    *(b"\x80", b"\xbf", b"\xc0", b"\xc1", b"\xf5", b"\xff"),
    *(b"\xed\xa0\x80", b"\xe0\x80", b"\xf4\x90", b"\xe2\x82", b"\xf0\x9f", b"\xc3"),
]


def is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_text_is_what_python_decodes(seed: int) -> None:
    dice = random.Random(seed)
    parts = PARTS if seed % 4 else PARTS[:6]
    values = [b"".join(dice.choices(parts, k=dice.randrange(4))) for _ in range(300)]
    lengths = np.array([len(each) for each in values], np.int64)
    data, faults = Bytes.of(pa.py_buffer(b"".join(values))), Faults()
    owners = np.arange(len(values))
    site = Site(pa.py_buffer(data.codes), data, faults, owners, "name")

    found = text(Spans(np.cumsum(lengths) - lengths, lengths), site)

    bad = [at for at, each in enumerate(values) if not is_text(each)]
    assert sorted(faults.why) == bad
    kept = [each.decode() if is_text(each) else "\0" * len(each) for each in values]
    assert found.to_pylist() == kept
