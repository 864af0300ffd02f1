"""JSON by docs/json.md, which says what each type takes. ``json_document`` gives the values.

Every rule is on that page, so that nothing is left that this reader cannot tell.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.json_document import Pairs, Spelt, pairs_of, speller, text_of
from rivermouth.verification.formats.json_scalars import (
    Settings,
    days,
    decimal,
    floating,
    from_int,
    is_decimal_text,
    is_json_number,
    settings_of,
    timestamps,
    whole,
)
from rivermouth.verification.formats.reader import Reader, Undecodable, short

Convert = Callable[[Any], Any]
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def converter(kind: pa.DataType, settings: Settings) -> Convert:
    """What converts a JSON value that is not null to a value of this type.

    It raises Undecodable for a value that does not fit. Raises Undecodable for an unknown type.
    """
    for test, convert in _BY_TYPE:
        if test(kind):
            return convert(kind, settings)
    raise Undecodable(f"a column of type {kind}")


def fold(settings: Settings) -> Callable[[str], str]:
    """What makes equal names of those that count as one."""
    return _without_case if settings.any_case else str


def _without_case(name: str) -> str:
    return name.lower() if name.isascii() else name.translate(_LOWER)


def by_name(
    pairs: Sequence[tuple[str, Any]], wanted: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    """The values of an object by their folded names. Raises Undecodable where a ``wanted`` name
    comes twice and may not.
    """
    if settings.any_case:
        pairs = [(_without_case(name), value) for name, value in pairs]
    found = dict(pairs)
    if len(found) < len(pairs) and not settings.repeated_names:
        check_once((name for name, _ in pairs if name in wanted), "")
    return found


def check_once(names: Iterable[str], where: str) -> None:
    """Raises Undecodable where a name comes twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise Undecodable(f"the name {short(name)} comes twice{where}")
        seen.add(name)


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _boolean(kind: pa.DataType, settings: Settings) -> Convert:
    def convert(value: Any) -> bool:
        if value is True or value is False:
            return bool(value)
        word = str(value).lower() if type(value) in (str, int, Spelt) else ""
        if settings.boolean_in_text and word in _WORDS:
            return _WORDS[word]
        raise Undecodable(f"not {kind}: {short(value)}")

    return convert


def _spelt(kind: pa.DataType, settings: Settings) -> Callable[[Any], str]:
    """The text of a number that is no int. Raises Undecodable for what is no number."""
    in_text = settings.number_in_text

    def spelt(value: Any) -> str:
        if type(value) is Spelt or (in_text and type(value) is str and is_json_number(value)):
            return str(value)
        raise Undecodable(f"not {kind}: {short(value)}")

    return spelt


def _integer(kind: pa.DataType, settings: Settings) -> Convert:
    limit = 1 << (kind.bit_width - 1)
    spelt = _spelt(kind, settings)

    def convert(value: Any) -> int:
        found = value if type(value) is int else whole(spelt(value))
        if -limit <= found < limit:
            return int(found)
        raise Undecodable(f"not {kind}: {short(value)}")

    return convert


def _floating(kind: pa.DataType, settings: Settings) -> Convert:
    spelt = _spelt(kind, settings)
    return lambda value: (
        from_int(value, kind) if type(value) is int else floating(spelt(value), kind)
    )


def _decimal(kind: pa.DataType, _: Settings) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is int:
            return decimal(str(value), kind)
        if type(value) is Spelt or (type(value) is str and is_decimal_text(value)):
            return decimal(value, kind)
        raise Undecodable(f"not {kind}: {short(value)}")

    return convert


def _text(kind: pa.DataType, settings: Settings) -> Convert:
    def strict(value: Any) -> str:
        if type(value) is str:
            return value
        raise Undecodable(f"not text: {short(value)}")

    def anything(value: Any) -> str:
        if value is True or value is False:
            return "true" if value else "false"
        return strict(str(value) if type(value) is Spelt else value)

    return anything if settings.anything_as_text else strict


def _binary(_: pa.DataType, __: Settings) -> Convert:
    def convert(value: Any) -> bytes:
        if type(value) is str and value.isascii():
            try:
                found = base64.b64decode(value, validate=True)
            except binascii.Error as fault:
                raise Undecodable(f"not base64: {fault}") from fault
            if base64.b64encode(found) == value.encode():  # no bit is left over
                return found
        raise Undecodable(f"not base64: {short(value)}")

    return convert


def _struct(kind: pa.DataType, settings: Settings) -> Convert:
    folded = fold(settings)
    fields = {each.name: (folded(each.name), converter(each.type, settings)) for each in kind}
    wanted = dict(fields.values())

    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not tuple:
            raise Undecodable(f"not an object: {short(value)}")
        found = by_name(value, wanted, settings)
        return {
            each: None if (json := found.get(name)) is None else inner(json)
            for each, (name, inner) in fields.items()
        }

    return convert


def _list(kind: pa.DataType, settings: Settings) -> Convert:
    inner = converter(kind.value_type, settings)

    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Undecodable(f"not an array: {short(value)}")
        return [None if each is None else inner(each) for each in value]

    return convert


def _map(kind: pa.DataType, settings: Settings) -> Convert:
    inner, folded = converter(kind.item_type, settings), fold(settings)

    def convert(value: Any) -> list[tuple[str, Any]]:
        if type(value) is not tuple:
            raise Undecodable(f"not an object: {short(value)}")
        # A name that comes again stands where its last value does.
        last = {folded(name): at for at, (name, _) in enumerate(value)}
        if len(last) < len(value):
            if not settings.repeated_names:
                check_once((folded(name) for name, _ in value), " in a map")
            value = [value[at] for at in sorted(last.values())]
        return [(name, None if each is None else inner(each)) for name, each in value]

    return convert


_BY_TYPE: Sequence[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, Settings], Convert]]
] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _floating),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_timestamp, timestamps),
    (pa.types.is_date, lambda _, __: days),
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _text),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), _binary),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), _list),
)


def reader(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """A reader of ``columns`` out of one JSON object, by the settings of an entry.

    See ``Reader``. Raises UnknownDecoder for settings that are not known.
    """
    settings = settings_of(decoder)
    folded = fold(settings)
    fields = {folded(each) for each in settings.fields}
    kinds = {name: schema.field(name).type for name in columns}
    wanted = {folded(name): converter(kind, settings) for name, kind in kinds.items()}
    in_order = [*wanted.items()]
    pairs = _anything(kinds, settings) if settings.anything_as_text else pairs_of

    def read(value: bytes) -> tuple[Any, ...]:
        found = by_name(pairs(text_of(value)), wanted, settings)
        if fields and fields.isdisjoint(found):
            raise Undecodable("it has none of the fields of the schema")
        values = [
            None if (json := found.get(name)) is None else convert(json)
            for name, convert in in_order
        ]
        return tuple(values)

    return read


def sent(schema: pa.Schema, columns: Sequence[str]) -> Reader:
    """A reader of ``columns`` out of what Spark's ``to_json`` wrote of a row.

    Spark writes NaN, the infinities, and times that are not in the years 1 to 9999 in its own way:
    they are Undecodable here.
    """
    return reader(schema, columns, {})


def _anything(kinds: Mapping[str, pa.DataType], settings: Settings) -> Callable[[str], Pairs]:
    """Gives the pairs of a document whose columns of text take anything."""
    spell = speller(pa.struct([*kinds.items()]), fold(settings))

    def pairs(text: str) -> Pairs:
        found = pairs_of(text, spelt=True)
        flat = text.count("{") + text.count("[") == 1
        return found if flat else spell(text, 0)[0]

    return pairs
