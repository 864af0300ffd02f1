"""The exact way: each record by the letter of the specification, to what Arrow makes columns of."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from rivermouth.formats.arrow import without_collector
from rivermouth.formats.strict_json import scalars
from rivermouth.formats.strict_json.document import read
from rivermouth.formats.strict_json.scalars import Array, Bad, Number, Object, from_text, shown
from rivermouth.formats.strict_json.types import JsonSettings, sql_name

Convert = Callable[[object], object]
"""Makes a value that is not null one of a column. Raises Bad for what the column does not take."""
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True)
class _Names:
    """How names are compared, and whether one may come twice."""

    any_case: bool
    repeated: bool

    @classmethod
    def of(cls, settings: JsonSettings) -> _Names:
        return cls("any_case" in settings.lenient, "repeated_names" in settings.lenient)

    @property
    def plain(self) -> bool:
        return not (self.any_case or self.repeated)

    def key(self, name: str) -> str:
        return name.translate(_LOWER) if self.any_case else name


def converter(kind: pa.DataType, settings: JsonSettings) -> Convert:
    """The conversion for values of a column of the type."""
    if pa.types.is_struct(kind):
        names = _Names.of(settings)
        fields = {
            names.key(each.name): (each.name, converter(each.type, settings)) for each in kind
        }
        return partial(_struct, names, fields)
    if pa.types.is_list(kind):
        return partial(_array, converter(kind.value_type, settings))
    if pa.types.is_map(kind):
        return partial(_map, _Names.of(settings), converter(kind.item_type, settings))
    return _plain(kind, settings)


def _plain(kind: pa.DataType, settings: JsonSettings) -> Convert:
    name = sql_name(kind)
    in_text = "number_in_text" in settings.lenient
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return partial(_integer, name, most, in_text)
    if pa.types.is_floating(kind):
        read = scalars.single if name == "FLOAT" else scalars.double
        return partial(_floating, name, read, in_text)
    if pa.types.is_decimal(kind):
        return partial(_decimal, name, kind.precision, kind.scale)
    if name == "STRING" and "anything_as_text" in settings.lenient:
        return _anything
    if name == "TIMESTAMP":
        return partial(_timestamp, settings)
    if name == "TIMESTAMP_NTZ":
        day = "date_as_time" in settings.lenient
        return partial(_text, name, partial(scalars.micros, zone=False, cut=settings.cut, day=day))
    if name == "BOOLEAN":
        return _truth if "boolean_in_text" in settings.lenient else _boolean
    readers: dict[str, Callable[[str], object]] = {
        "DATE": scalars.days,
        "BINARY": _bytes,
        "STRING": str,
    }
    return partial(_text, name, readers[name])


def _struct(
    names: _Names, fields: Mapping[str, tuple[str, Convert]], value: object
) -> dict[str, object]:
    if not isinstance(value, tuple):
        raise Bad(f"STRUCT takes an object, not {shown(value)}")
    members: Iterable[tuple[str, object]] = (
        value if names.plain else _counting(names, value, fields)
    )
    row: dict[str, object] = {}
    for key, item in members:
        found = fields.get(key)
        if found is None:
            continue
        name, convert = found
        if name in row:
            raise Bad("the name comes twice").within(f".{name}")
        row[name] = _converted(convert, item, name)
    return row


def _counting(
    names: _Names, value: tuple[tuple[str, object], ...], fields: Mapping[str, object]
) -> list[tuple[str, object]]:
    """The members that count, by the keys of their names."""
    members = [(names.key(name), item) for name, item in value]
    if not names.repeated:
        return members
    return list({key: item for key, item in members if key in fields}.items())


def _map(names: _Names, convert: Convert, value: object) -> list[tuple[str, object]]:
    if not isinstance(value, tuple):
        raise Bad(f"MAP takes an object, not {shown(value)}")
    members: dict[str, tuple[str, object]] = {}
    for name, item in value:
        key = names.key(name)
        if key in members:
            if not names.repeated:
                raise Bad("the name comes twice").within(f".{name}")
            del members[key]  # the last one stands where it came
        members[key] = name, item
    return [(name, _converted(convert, item, name)) for name, item in members.values()]


def _array(convert: Convert, value: object) -> list[object]:
    if not isinstance(value, list):
        raise Bad(f"ARRAY takes an array, not {shown(value)}")
    return [_converted(convert, item, index) for index, item in enumerate(value)]


def _converted(convert: Convert, item: object, at: str | int) -> object:
    """None for null. ``at``: the name or the index, which only a fault spells out."""
    if item is None:
        return None
    try:
        return convert(item)
    except Bad as bad:
        raise bad.within(f"[{at}]" if isinstance(at, int) else f".{at}") from None


def _spelt_number(name: str, in_text: bool, value: object) -> str:
    """How the number is spelt that the value is, or that stands in its text."""
    if type(value) is Number:
        return value
    if in_text and type(value) is str and scalars.JSON_NUMBER.fullmatch(value):
        return value
    raise Bad(f"{name} takes a number, not {shown(value)}")


def _integer(name: str, most: int, in_text: bool, value: object) -> int:
    text = _spelt_number(name, in_text, value)
    try:
        number = int(text) if len(text) < 20 else scalars.whole(text)
    except ValueError:
        number = scalars.whole(text)
    if number is None or not -most <= number < most:
        raise Bad(f"{name} takes whole numbers of its range, not {shown(value)}")
    return number


def _floating(name: str, read: Callable[[str], float], in_text: bool, value: object) -> float:
    return read(_spelt_number(name, in_text, value))


def _decimal(name: str, precision: int, scale: int, value: object) -> object:
    if not isinstance(value, str):
        raise Bad(f"{name} takes a number, not {shown(value)}")
    return scalars.decimal(value, precision, scale)


def _timestamp(settings: JsonSettings, value: object) -> int:
    lenient, unit = settings.lenient, settings.unit
    in_text = "count_in_text" in lenient and type(value) is str
    if unit is not None and in_text and scalars.JSON_NUMBER.fullmatch(str(value)):
        value = Number(value)
    if type(value) is Number and unit is not None:
        fraction = "fraction_in_count" in lenient
        return scalars.counted(value, unit, cut=settings.cut, fraction=fraction)
    if type(value) is not str:
        raise Bad(f"TIMESTAMP takes text, not {shown(value)}")
    return scalars.micros(value, zone=True, cut=settings.cut, day="date_as_time" in lenient)


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise Bad(f"BOOLEAN takes true or false, not {shown(value)}")


_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def _truth(value: object) -> bool:
    word = str(value).lower() if type(value) in (str, Number) else ""
    if word in (*_TRUE, *_FALSE):
        return word in _TRUE
    return _boolean(value)


def _text(name: str, read: Callable[[str], object], value: object) -> object:
    if type(value) is not str:
        raise Bad(f"{name} takes text, not {shown(value)}")
    return read(value)


def _anything(value: object) -> str:
    if isinstance(value, Object | Array):
        return value.spelt
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _bytes(text: str) -> bytes:
    found = from_text(text)
    if found is None:
        raise Bad(f"{shown(text)} is not base64")
    return found


_LISTED = 3


def without_field(value: bytes, row: pa.StructType, settings: JsonSettings) -> str | None:
    """What a good record has instead of a field of the columns; None where it has one."""
    names, pairs = _Names.of(settings), read(value, spelt=False)
    assert isinstance(pairs, tuple)
    given = [str(pair[0]) for pair in pairs if isinstance(pair, tuple)]
    if settings.empty or not {names.key(e.name) for e in row}.isdisjoint(map(names.key, given)):
        return None
    listed = ", ".join(shown(each).removeprefix("the text ") for each in given[:_LISTED])
    return f"it has {listed or 'no field'}{' …' if len(given) > _LISTED else ''}"


def decode_one_by_one(
    values: Iterable[bytes], row: pa.StructType, settings: JsonSettings
) -> tuple[pa.StructArray, list[str | None]]:
    """The rows, null for bad records, and for each record why it is bad, if it is."""
    convert = converter(row, settings)
    spelt = "anything_as_text" in settings.lenient
    rows: list[object] = []
    reasons: list[str | None] = []
    with without_collector():
        for value in values:
            try:
                rows.append(convert(read(value, spelt)))
                reasons.append(None)
            except Bad as bad:
                rows.append(None)
                reasons.append(bad.reason)
        return pa.array(rows, row), reasons
