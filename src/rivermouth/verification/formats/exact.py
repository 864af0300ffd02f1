"""Values of binary formats for columns: exactly, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.json_scalars import Settings, rounded
from rivermouth.verification.formats.reader import Undecodable, short

Convert = Callable[[Any], Any]
_EXACT = Context(prec=100)
_FIRST, _UNTIL = -62_135_596_800_000_000, 253_402_300_800_000_000


def whole(logical: str, kind: pa.DataType, of: Settings) -> Convert | None:
    """What converts whole numbers with a meaning (Avro's word for it; empty: none); None: the
    column takes none.
    """
    if pa.types.is_timestamp(kind):
        local = logical.startswith("local-")
        if logical.removeprefix("local-").startswith("timestamp-"):
            return time(logical.rpartition("-")[2], of) if local == (kind.tz is None) else None
        return time(of.unit, of) if kind.tz and of.unit and not logical else None
    if pa.types.is_date(kind):
        return (lambda value: _in_years(value, 86_400_000_000)) if logical == "date" else None
    if pa.types.is_integer(kind):
        return lambda value: fits(
            value, -(1 << kind.bit_width - 1) <= value < 1 << kind.bit_width - 1
        )
    if pa.types.is_floating(kind):
        near: Callable[[int], float] = float if kind.bit_width == 64 else rounded
        return lambda value: fits(near(value), int(near(value)) == value)
    return (lambda value: decimal(Decimal(value), kind)) if pa.types.is_decimal(kind) else None


def fits(value: Any, exactly: bool) -> Any:
    """The value, if the column holds it exactly. Raises Undecodable."""
    if not exactly:
        raise Undecodable(f"the column does not hold {short(value)} exactly")
    return value


_PER_SECOND = {"millis": 1_000, "micros": 10**6, "nanos": 10**9}
_PER_SECOND |= {"s": 1, "ms": 1_000, "us": 10**6, "ns": 10**9}


def time(unit: Any, of: Settings) -> Convert:
    """What converts a time since 1970 in the unit to microseconds."""
    per_second = _PER_SECOND[unit]

    def convert(value: int) -> int:
        us, rest = divmod(value * 10**6, per_second)
        if rest and not of.cut:
            raise Undecodable(f"a time that is no whole microsecond: {value}")
        return int(fits(us, _FIRST <= us < _UNTIL))

    return convert


def _in_years(value: int, us: int) -> int:
    return int(fits(value, _FIRST <= value * us < _UNTIL))


def text(value: bytes) -> str:
    """The text that is spelt so. Raises Undecodable."""
    try:
        return value.decode()
    except UnicodeDecodeError as fault:
        raise Undecodable(f"not UTF-8: {fault}") from fault


def decimal(value: Decimal, kind: pa.DataType) -> Decimal:
    """The value with the scale of the column. Raises Undecodable."""
    # In this order: there are not digits enough to round what is far beyond the column.
    fits(value, value.copy_abs() < Decimal(10) ** (kind.precision - kind.scale))
    found = value.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    return Decimal(fits(found, found == value))


def unscaled(value: bytes, scale: int) -> Decimal:
    """A number in two's complement, the highest byte first, of which ``scale`` digits are behind
    its point; exactly, however many there are. Raises Undecodable.
    """
    if not value:
        raise Undecodable("a number without a byte")
    whole = Decimal(int.from_bytes(value, "big", signed=True)).as_tuple()
    return Decimal((whole.sign, whole.digits, -scale))
