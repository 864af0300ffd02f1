"""A record as a decoder and a reader of the checker judge it, and that they agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from rivermouth.formats.arrow import InArrow
from rivermouth.verification.formats.reader import Undecodable
from tests.unit.formats.avro.test_decoder import rows_of


@dataclass(frozen=True)
class Refused:
    """In place of a row: the record goes to quarantine with this code."""

    code: str


BAD, UNFIT = Refused("RM603"), Refused("RM613")


def judged_alike(decoder: InArrow, read: Callable[[bytes], object], value: bytes) -> object:
    """The row, or ``Refused``: of the decoder, which also reads the value once more, and a null.

    ``read`` is of the checker. It has to judge the same, or this fails.
    """
    decoded = decoder.decode(pa.array([value, None, value], pa.binary()))
    decoded.rows.validate(full=True)
    first, null, last = rows_of(decoded.rows)
    assert repr(first) == repr(last)
    assert null is None
    codes = decoded.codes.to_pylist()
    assert codes == [codes[0], None, codes[0]]
    assert (first is None) == (codes[0] is not None), "a row, or a code"
    try:
        by_checker: object = read(value)
    except Undecodable:
        by_checker = None
    assert repr(by_checker) == repr(first), decoded.reasons[0]
    return first if codes[0] is None else Refused(codes[0])
