"""Schemas and records made by dice: most of them good, some at the edges, some broken.

How wild a chunk is is drawn per chunk, so that both ways of the decoder have work.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from rivermouth.formats.strict_json.types import sql_name


def words(text: str) -> list[str]:
    """The words of a text, which are parted by space."""
    return text.split()


_NAMES = ("a", "B", "price", "ü", "k_1", "Name", "zz", "\u212a")
_SIMPLE = (
    *words("""
    BOOLEAN TINYINT SMALLINT INT BIGINT BIGINT FLOAT DOUBLE STRING STRING BINARY DATE
    TIMESTAMP TIMESTAMP TIMESTAMP_NTZ DECIMAL(5,2) DECIMAL(38,2) DECIMAL(38,38)
    DECIMAL(38,0) DECIMAL(1,1) DECIMAL(12,0)
"""),
)
_NUMBERS = (
    *words("""
    0 -0 0.0 -0.0 1 127 128 -128 -129 32767 32768 2147483648 9223372036854775807
    9223372036854775808 -9223372036854775808 -9223372036854775809 9007199254740991
    9007199254740992 9007199254740993 16777215 16777217 1.5 7.0 1e2 1E+2 100e-2 1e-2 12.50
    12.505 999.99 999.995 1000 1e38 3.4028235677973366e38
    3.40282356779733661637539395458142568447e38 1e39 1e308 1.7976931348623159e308 1e400
    -1e400 1e-400 4.9e-324 1e-45 0e999 1.000000000000000000000000000000000000001 1e37 99e36
    99e37 1e99999999999999999999 0e-99999999999999999999 1.7014118346046923e38 1e19 1e18
    1767225600 1500
"""),
    *("9" * 38, "9" * 39, "1" + "0" * 60, "0." + "9" * 38, "0." + "0" * 50 + "1"),
    *("9" * 36 + ".99", "9" * 36 + ".999", "9" * 37),
)
_TIMES = (
    *words("""
    2026-01-31T10:00:00Z 2026-01-31T10:00 2026-01-31t10:00:00z
    2026-01-31T10:00:00.123456789Z 2026-01-31T10:00:00.123456000Z 2026-01-31T10:00:00.1
    2026-01-31T10:00:00+01 2026-01-31T10:00:00-0130 2026-01-31T10:00:00+24:00 2026-01-31
    0001-01-01T00:00:00+00:01 9999-12-31T23:59:59-00:01 0000-01-01T00:00:00Z 2100-02-29
    2026-02-29T00:00:00Z 2024-02-29T00:00:00Z 1900-02-29T00:00:00Z 2024-02-29 0001-01-01
    2026-01-31T24:00:00Z 2026-01-31T10:60:00Z 2026-01-31T10:00:60Z 2026-13-01 9999-12-31
    2026-01-31T10Z 2026-01-31T10:00:00.Z 2026-1-31 1969-12-31T23:59:59.9999999Z
    2026-01-31T10:00:00-00:00 2026-01-31T10:00:00+0530 2999-12-31T23:59:59-23:59
"""),
    *("2026-01-31 10:00:00", "2026-01-31T10:00:00 Z", " 2026-01-31"),
    *("2026-01-31T10:00:00Z\\n", "2026-01-31\\n", "٢026-01-31", ""),
)
_TEXTS = (
    *words("""
    x Information NaN [:NaN :Infinity 7 1.5 +.5 1. 1e-2 1_0 true QQ== QR== QUI= QUJD QUJ -7
    0x10 1e400
"""),
    *("", "} null {", "a}\\n{b", "\\u0000", "\\ud83d\\ude00", "\\u00e9", "é", "😀", " 1"),
    *("QQ=\\n=", "\\/", "\\\\u0041", "\\\\", '\\"', "\\t"),
)
_JUNK = (
    *words("""
    {} [] [1,[2]] {"a":{"a":1,"a":2}} true [null] {"b":[{}]} [] 7
"""),
    *('"x"',),
)


def ddl(dice: random.Random, maps: bool, arrays: bool = True) -> str:
    """Columns, as SQL text."""
    return _fields(dice, 0, maps, arrays)


def _fields(dice: random.Random, depth: int, maps: bool, arrays: bool) -> str:
    names = dice.sample(_NAMES, dice.randint(1, 5))
    return ", ".join(f"`{name}` {_kind(dice, depth, maps, arrays)}" for name in names)


def _kind(dice: random.Random, depth: int, maps: bool, arrays: bool) -> str:
    draw = dice.random()
    if depth == 3 or draw < 0.7 or not (arrays or draw < 0.85):
        return dice.choice(_SIMPLE)
    if draw < 0.85:
        return f"STRUCT<{_fields(dice, depth + 1, maps, arrays).replace('` ', '`: ')}>"
    inner = _kind(dice, depth + 1, maps, arrays)
    return f"MAP<STRING, {inner}>" if maps and draw > 0.95 else f"ARRAY<{inner}>"


def document(dice: random.Random, row: pa.StructType, wild: float) -> str:
    """One document that fits the row, but for what ``wild`` (0 to 1) changes."""
    text = _object(dice, row, wild)
    if dice.random() < wild:
        text = dice.choice((" ", "\n", "\r\n\t")) + text + dice.choice(("", " ", "\n"))
    return text


def _object(dice: random.Random, row: pa.StructType, wild: float) -> str:
    members = [(each.name, _value(dice, each.type, wild)) for each in row if dice.random() < 0.9]
    if dice.random() < 0.2 + wild / 2:
        names = dice.choice(("other", dice.choice(_NAMES), dice.choice(_NAMES).swapcase()))
        fitting = names in {each.name for each in row} and dice.random() > wild
        members += [] if fitting else [(names, dice.choice(_JUNK))]
    if members and dice.random() < wild / 5:
        members.append(dice.choice(members))
    dice.shuffle(members)
    comma, colon = dice.choice(((",", ":"), (", ", ": "), (" ,\n ", " :\t")))
    return f"{{{comma.join(f'{_name(dice, n)}{colon}{v}' for n, v in members)}}}"


def producer(dice: random.Random, row: pa.StructType) -> Callable[[float], str]:
    """What makes documents that are laid out alike, but for what ``wild`` (0 to 1) changes."""
    comma, colon = dice.choice(((",", ":"), (", ", ": "), (" , ", " :  ")))
    members = [(each.name, _member(dice, each.type)) for each in row if dice.random() < 0.9]
    if dice.random() < 0.3:
        members.append(("other", lambda _: dice.choice(("7", "-1.5e2", "true", "null"))))
    dice.shuffle(members)
    named = [(f'"{name}"{colon}', make) for name, make in members]
    return lambda wild: f"{{{comma.join(name + make(wild) for name, make in named)}}}"


def _member(dice: random.Random, kind: pa.DataType) -> Callable[[float], str]:
    if pa.types.is_struct(kind):
        return producer(dice, kind)
    if dice.random() < 0.05:
        return lambda wild: _value(dice, kind, wild) if dice.random() < wild else "null"
    if pa.types.is_timestamp(kind) and dice.random() < 0.8:
        spell = dice.choice(_FRACTIONS), _zone(dice, kind)
        return lambda wild: (
            _value(dice, kind, wild) if dice.random() < wild else _time(dice, *spell)
        )
    quoted = not kind.num_fields and _calm(dice, kind).startswith('"')

    def value(wild: float) -> str:
        if kind.num_fields or dice.random() < wild:
            return _value(dice, kind, wild)
        text = _calm(dice, kind)
        alike = text.startswith('"') == quoted and "\\" not in text
        return text if alike else value(wild)

    return value


def _name(dice: random.Random, name: str) -> str:
    if dice.random() < 0.05:
        return '"' + "".join(f"\\u{ord(each):04x}" for each in name) + '"'
    return f'"{name}"'


def _value(dice: random.Random, kind: pa.DataType, wild: float) -> str:
    if dice.random() < 0.05:
        return "null"
    if dice.random() < wild / 5:
        return dice.choice(_JUNK)
    if pa.types.is_struct(kind):
        return _object(dice, kind, wild)
    if pa.types.is_list(kind):
        items = (_value(dice, kind.value_type, wild) for _ in range(dice.choice((0, 1, 3))))
        return f"[{', '.join(items)}]"
    if pa.types.is_map(kind):
        names = (dice.choice((*_NAMES, "x", "A")) for _ in range(dice.choice((0, 1, 2))))
        members = (f"{_name(dice, n)}:{_value(dice, kind.item_type, wild)}" for n in names)
        return f"{{{','.join(members)}}}"
    return _edge(dice) if dice.random() < wild else _calm(dice, kind)


def _edge(dice: random.Random) -> str:
    texts = dice.choice((_TEXTS, _TIMES, _NUMBERS))
    return dice.choice((dice.choice(_NUMBERS), f'"{dice.choice(texts)}"', _number(dice)))


def _number(dice: random.Random) -> str:
    """A number at which rounding is not easy."""
    near = dice.uniform(-1, 1) * 10.0 ** dice.randint(-50, 40)
    exact = Decimal(near)
    return dice.choice(
        (repr(near), f"{exact:f}"[:60], f"{near:.9g}", f"{exact:.40e}", f"{near:.0f}")
    )


_FRACTIONS = ("", ".5", ".123456")


def _zone(dice: random.Random, kind: pa.TimestampType) -> str:
    return dice.choice(("Z", "Z", "+01:00", "-11:30", "")) if kind.tz else ""


def _time(dice: random.Random, fraction: str, zone: str) -> str:
    clock = f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}"
    return f'"{_day(dice)}T{clock}{fraction}{zone}"'


def _day(dice: random.Random) -> str:
    """One of every year and month; hardly ever one that was not."""
    day = dice.randint(1, 31 if dice.random() < 0.001 else 28)
    return f"{dice.randint(1000, 2999)}-{dice.randint(1, 12):02}-{day:02}"


def _calm(dice: random.Random, kind: pa.DataType) -> str:
    name = sql_name(kind)
    if pa.types.is_integer(kind):
        return str(dice.randint(-128, 127))
    if pa.types.is_decimal(kind):
        text = f"0.{dice.randrange(10)}" if kind.scale else str(dice.randrange(10**12))
        return dice.choice((text, f'"{text}"'))
    if pa.types.is_timestamp(kind):
        return _time(dice, dice.choice(_FRACTIONS), _zone(dice, kind))
    return {
        "BOOLEAN": dice.choice(("true", "false")),
        "FLOAT": repr(dice.uniform(-1000, 1000)),
        "DOUBLE": repr(dice.uniform(-1e9, 1e9)),
        "BINARY": dice.choice(('""', '"QQ=="', '"QUI="', '"QUJDRA=="')),
        "DATE": f'"{_day(dice)}"',
        "STRING": json.dumps(
            dice.choice(("x", "Göteborg", "a b c", "", "\n", "😀")),
            ensure_ascii=dice.random() < 0.5,
        ),
    }[name]
