"""How fields of messages are put together: merging, oneofs, maps, enums, text, required fields.

Google's parser agrees, but for the rows that say why not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.formats.protobuf.decoder import Protobuf
from rivermouth.formats.shredded.reading import Settings
from rivermouth.verification.formats.protobuf import reader
from rivermouth.verification.formats.reader import Undecodable
from tests.unit.formats.judged import BAD, UNFIT
from tests.unit.formats.protobuf.judged import ONE, REPEATED, by_google, judged, number_of
from tests.unit.formats.protobuf.wire import END, GROUP, VARINT, block, field, tag, varint

pytestmark = pytest.mark.unit

INT, TEXT, BYTES, TIME = pa.int32(), pa.string(), pa.binary(), pa.timestamp("us", "UTC")
INNER = pa.struct([("n", INT), ("s", TEXT), ("list", pa.list_(INT))])
MUST = pa.struct([("n", INT), ("s", TEXT)])
TINY = pa.struct([("n", pa.int8())])
NOT_TEXT = b"\xa0\xb0\xc0\xd0"
STRING, MOOD, ONE_TEXT, ONE_NUMBER = (
    number_of("string"),
    number_of("Mood"),
    number_of("string") + ONE,
    number_of("int32") + ONE,
)


@dataclass(frozen=True)
class Case:
    """A message and what becomes of it. ``why``: Google's parser differs for this reason."""

    message: str
    row: dict[str, pa.DataType]
    value: bytes
    expected: object
    why: str = ""


def n(value: int, number: int = 1) -> bytes:
    """A number in a field."""
    return field(number, VARINT, varint(value))


def pair(number: int, key: bytes, value: bytes = b"") -> bytes:
    """An entry of a map."""
    return block(number, key + value)


def of_map(name: str, kind: pa.DataType) -> dict[str, pa.DataType]:
    return {name: pa.map_(TEXT, kind)}


PARTS = block(101, n(1) + block(2, b"a") + n(5, 3)) + block(101, n(2) + n(6, 3))
DEEP = block(103, block(101, n(1))) + block(103, block(101, block(2, b"a")))
MERGED = {
    "a message in two parts": Case(
        "three.All", {"inner": INNER}, PARTS, ({"n": 2, "s": "a", "list": [5, 6]},)
    ),
    "a message in two parts, version 2": Case(
        "two.All", {"inner": INNER}, PARTS, ({"n": 2, "s": "a", "list": [5, 6]},)
    ),
    "a message in a message in two parts": Case(
        "two.All",
        {"deeper": pa.struct([("inner", INNER)])},
        DEEP,
        ({"inner": {"n": 1, "s": "a", "list": []}},),
    ),
    "an empty part": Case(
        "two.All",
        {"inner": INNER},
        block(101, n(1)) + block(101, b""),
        ({"n": 1, "s": None, "list": []},),
    ),
    "a list of messages is not merged": Case(
        "two.All",
        {"inners": pa.list_(TINY)},
        block(102, n(1)) + block(102, b""),
        ([{"n": 1}, {"n": None}],),
    ),
    "a message in two parts, as bytes": Case(
        "two.All",
        {"inner": BYTES},
        block(101, n(1)) + block(101, block(2, b"a")),
        (b"\x12\1a",),
        "of a message as bytes the last part counts",
    ),
    "a message as bytes that is none": Case(
        "two.All", {"inner": BYTES}, block(101, b"\x08"), (b"\x08",), "bytes are not looked into"
    ),
    "a message that no column takes": Case(
        "two.All", {"f_int32": INT}, block(101, b"\x08") + n(1), (1,), "it is not looked into"
    ),
}
O_INNER, O_TEXT = {"o_inner": INNER, "o_string": TEXT}, {"o_string": TEXT}
ONEOF = {
    "a message in two parts": Case(
        "three.All",
        O_INNER,
        block(80, n(1)) + block(80, block(2, b"a")),
        ({"n": 1, "s": "a", "list": []}, None),
    ),
    "text between the parts": Case(
        "three.All",
        O_INNER,
        block(80, n(1)) + block(ONE_TEXT, b"x") + block(80, block(2, b"a")),
        ({"n": 0, "s": "a", "list": []}, None),
    ),
    "a message of no bytes": Case(
        "three.All", O_INNER, block(80, b""), ({"n": 0, "s": "", "list": []}, None)
    ),
    "of what no column takes": Case(
        "three.All", O_TEXT, block(ONE_TEXT, b"x") + n(1, ONE_NUMBER), (None,)
    ),
    "of another wire type": Case(
        "three.All", O_TEXT, block(ONE_TEXT, b"x") + block(ONE_NUMBER, b"a"), ("x",)
    ),
    "a number that a closed enum does not have": Case(
        "two.Pick", {"s": TEXT}, block(3, b"x") + n(99, 2), ("x",)
    ),
    "a number that a closed enum has": Case(
        "two.Pick", {"s": TEXT, "mood": TEXT}, block(3, b"x") + n(1, 2), (None, "GLAD")
    ),
    "a number that an open enum does not have": Case(
        "three.All", O_TEXT, block(ONE_TEXT, b"x") + n(99, MOOD + ONE), (None,)
    ),
    "a group": Case("two.Pick", {"s": TEXT}, block(3, b"x") + tag(4, GROUP) + tag(4, END), (None,)),
    "a group, with a length": Case("two.Pick", {"s": TEXT}, block(3, b"x") + block(4, b""), ("x",)),
    "lost: without a required field": Case(
        "two.Pick", {"must": MUST, "s": TEXT}, block(1, b"") + block(3, b"x"), (None, "x")
    ),
    "lost: a required field in the other part": Case(
        "two.Pick",
        {"must": MUST},
        block(1, n(1)) + block(3, b"x") + block(1, block(2, b"a")),
        BAD,
    ),
    "lost: a number beyond the column": Case(
        "two.Pick", {"must": TINY, "s": TEXT}, block(1, n(1000)) + block(3, b"x"), (None, "x")
    ),
    "lost: a text that is not UTF-8": Case(
        "two.Pick",
        {"must": MUST, "s": TEXT},
        block(1, n(1) + block(2, NOT_TEXT)) + block(3, b"x"),
        (None, "x"),
    ),
    "lost: a message that is cut": Case(
        "two.Pick", {"must": MUST, "s": TEXT}, block(1, b"\x08") + block(3, b"x"), BAD
    ),
    "lost: a list that is cut": Case(
        "three.All", O_INNER, block(80, block(3, b"\x80")) + block(ONE_TEXT, b"x"), BAD
    ),
    "lost: a message in it that is cut": Case(
        "three.All",
        {"o_inner": pa.struct([("inner", TINY)]), **O_TEXT},
        block(80, block(4, b"\x08")) + block(ONE_TEXT, b"x"),
        BAD,
    ),
}
KEY, AT_0 = block(1, b"k"), ("k", 0)
NUMBERS, TRUTHS, TEXTS = of_map("m_int32", INT), of_map("m_bool", TEXT), of_map("m_string", TEXT)
MOODS, INNERS, FIXED = (
    of_map("m_mood", TEXT),
    of_map("m_inner", INNER),
    of_map("m_fixed", pa.int64()),
)
LOST = "Google's parser of Python leaves out an entry with a field it does not know, others do not"
EMPTY: dict[str, Any] = {"n": None, "s": None, "list": []}
MAPS = {
    "key and value": Case("three.All", NUMBERS, pair(104, n(1), n(2, 2)), ([("1", 2)],)),
    "the value first": Case("three.All", NUMBERS, pair(104, n(2, 2), n(1)), ([("1", 2)],)),
    "no key": Case("three.All", NUMBERS, pair(104, b"", n(2, 2)), ([("0", 2)],)),
    "no value": Case("three.All", NUMBERS, pair(104, n(1)), ([("1", 0)],)),
    "neither": Case("three.All", NUMBERS, pair(104, b""), ([("0", 0)],)),
    "no key, a boolean": Case(
        "three.All", TRUTHS, pair(105, b"", block(2, b"a")), ([("false", "a")],)
    ),
    "no key, text": Case("three.All", TEXTS, pair(106, b"", block(2, b"a")), ([("", "a")],)),
    "no value, text": Case("three.All", TEXTS, pair(106, KEY), ([("k", "")],)),
    "no value, an enum": Case("three.All", MOODS, pair(108, KEY), ([("k", "CALM")],)),
    "no value, a message": Case(
        "three.All", INNERS, pair(107, KEY), ([("k", {"n": 0, "s": "", "list": []})],)
    ),
    "no value, a message of version 2": Case("two.All", INNERS, pair(107, KEY), ([("k", EMPTY)],)),
    "no value, a time": Case("three.All", of_map("m_time", TIME), pair(110, KEY), ([AT_0],)),
    "no value, a wrapper": Case("three.All", of_map("m_wrapped", INT), pair(111, KEY), ([AT_0],)),
    "no value, eight bytes": Case("three.All", FIXED, pair(109, b"\x0d\1\0\0\0"), ([("1", 0)],)),
    "no value, required fields": Case("two.Holder", of_map("by", MUST), pair(3, KEY), BAD),
    "an empty value, required fields": Case(
        "two.Holder", of_map("by", MUST), pair(3, KEY, block(2, b"")), BAD
    ),
    "a key twice, in two entries": Case(
        "three.All", NUMBERS, pair(104, n(1), n(2, 2)) + pair(104, n(1), n(3, 2)), ([("1", 3)],)
    ),
    "a key twice, with messages": Case(
        "two.All",
        INNERS,
        pair(107, KEY, block(2, n(1))) + pair(107, KEY, block(2, block(2, b"a"))),
        ([("k", {"n": None, "s": "a", "list": []})],),
    ),
    "two keys in an entry": Case(
        "three.All", NUMBERS, pair(104, n(1) + n(2), n(3, 2)), ([("2", 3)],)
    ),
    "two values in an entry": Case(
        "three.All", NUMBERS, pair(104, n(1), n(2, 2) + n(3, 2)), ([("1", 3)],)
    ),
    "two messages in an entry": Case(
        "two.All",
        INNERS,
        pair(107, KEY, block(2, n(1)) + block(2, block(2, b"a"))),
        ([("k", {"n": 1, "s": "a", "list": []})],),
    ),
    "an unknown field in an entry": Case(
        "three.All", NUMBERS, pair(104, n(1), n(2, 2) + n(3, 3)), ([("1", 2)],), LOST
    ),
    "a key of another wire type": Case(
        "three.All", NUMBERS, pair(104, block(1, b"a"), n(2, 2)), ([("0", 2)],), LOST
    ),
    "a value of another wire type": Case(
        "three.All", NUMBERS, pair(104, n(1), block(2, b"a")), ([("1", 0)],), LOST
    ),
    "an entry that is cut": Case("three.All", NUMBERS, pair(104, n(1), b"\x10"), BAD),
    "a closed enum's number": Case("two.All", MOODS, pair(108, KEY, n(1, 2)), ([("k", "GLAD")],)),
    "none of a closed enum's": Case("two.All", MOODS, pair(108, KEY, n(9, 2)), ([],)),
    "none of a closed enum's, then one": Case(
        "two.All", MOODS, pair(108, KEY, n(9, 2) + n(1, 2)), ([],)
    ),
    "none of a closed enum's, after an entry": Case(
        "two.All", MOODS, pair(108, KEY, n(1, 2)) + pair(108, KEY, n(9, 2)), ([("k", "GLAD")],)
    ),
    "none of an open enum's": Case(
        "three.All", MOODS, pair(108, KEY, n(9, 2)), BAD, "a number without a name is no text"
    ),
    "none of an open enum's, as a number": Case(
        "three.All", of_map("m_mood", INT), pair(108, KEY, n(9, 2)), ([("k", 9)],)
    ),
}
F_MOOD, R_MOOD = {"f_Mood": TEXT}, {"r_Mood": pa.list_(TEXT)}
NO_NAME = "a number without a name is no text"
ENUMS = {
    "an open one, no name": Case("three.All", F_MOOD, n(9, MOOD), BAD, NO_NAME),
    "an open one, no name, as a number": Case("three.All", {"f_Mood": INT}, n(9, MOOD), (9,)),
    "an open one, no name in a list": Case(
        "three.All", R_MOOD, n(1, MOOD + REPEATED) + n(9, MOOD + REPEATED), BAD, NO_NAME
    ),
    "an open one, replaced": Case("three.All", F_MOOD, n(9, MOOD) + n(1, MOOD), ("GLAD",)),
    "a closed one, no name": Case("two.All", F_MOOD, n(9, MOOD), (None,)),
    "a closed one, no name, as a number": Case("two.All", {"f_Mood": INT}, n(9, MOOD), (None,)),
    "a closed one, no name after one": Case("two.All", F_MOOD, n(1, MOOD) + n(9, MOOD), ("GLAD",)),
    "a closed one, no name in a list": Case(
        "two.All", R_MOOD, n(1, MOOD + REPEATED) + n(9, MOOD + REPEATED), (["GLAD"],)
    ),
    "a closed one, no name in a packed list": Case(
        "two.All", R_MOOD, block(MOOD + REPEATED, b"\1\x09\2"), (["GLAD", "SAD"],)
    ),
    "absent, version 3": Case("three.All", {**F_MOOD, "f_int32": INT}, n(1), ("CALM", 1)),
    "absent, version 2": Case("two.All", {**F_MOOD, "f_int32": INT}, n(1), (None, 1)),
}
UTF8 = {
    **{
        f"{place}, version {name}": Case(f"{name}.All", {column: kind}, value, BAD, why)
        for name, why in (("two", "text is UTF-8 in version 2, too"), ("three", ""))
        for place, column, kind, value in (
            ("one", "f_string", TEXT, block(STRING, NOT_TEXT)),
            ("in a list", "r_string", pa.list_(TEXT), block(STRING + REPEATED, NOT_TEXT)),
            ("in a oneof", "o_string", TEXT, block(ONE_TEXT, NOT_TEXT)),
            ("a value", "m_string", pa.map_(TEXT, TEXT), pair(106, KEY, block(2, NOT_TEXT))),
        )
    },
    "a key, version two": Case("two.All", TEXTS, pair(106, block(1, NOT_TEXT)), BAD),
    "a key, version three": Case("three.All", TEXTS, pair(106, block(1, NOT_TEXT)), BAD),
    "as bytes": Case("two.All", {"f_bytes": BYTES}, block(STRING + 1, NOT_TEXT), (NOT_TEXT,)),
    "text for BINARY": Case(
        "three.All",
        {"f_string": BYTES},
        block(STRING, NOT_TEXT),
        (NOT_TEXT,),
        "bytes need no UTF-8",
    ),
    "that no column takes": Case(
        "three.All", {"f_int32": INT}, block(STRING, NOT_TEXT) + n(1), (1,), "it is not looked at"
    ),
    "that a later one replaces": Case(
        "three.All",
        {"f_string": TEXT},
        block(STRING, NOT_TEXT) + block(STRING, b"a"),
        ("a",),
        "it is not looked at",
    ),
}
N = {"n": INT}
REQUIRED = {
    "it is there": Case("two.Must", N, n(1), (1,)),
    "it is missing": Case("two.Must", {"s": TEXT}, block(2, b"a"), BAD),
    "it is of another wire type": Case(
        "two.Must", {"s": TEXT}, block(1, b"a") + block(2, b"a"), BAD
    ),
    "it is missing in a message": Case("two.Holder", {"must": MUST}, block(1, b""), BAD),
    "it comes in the second part": Case(
        "two.Holder", {"must": MUST}, block(1, b"") + block(1, n(1)), ({"n": 1, "s": None},)
    ),
    "it is missing in a list": Case(
        "two.Holder", {"musts": pa.list_(MUST)}, block(2, n(1)) + block(2, b""), BAD
    ),
    "it is missing where no column is": Case(
        "two.Holder", N, block(1, b"") + n(1, 4), (1,), "it is not looked into"
    ),
    "a closed enum's number": Case("two.MustMood", N, n(1) + n(5, 2), (5,)),
    "none of a closed enum's": Case("two.MustMood", N, n(9) + n(5, 2), BAD),
    "none of a closed enum's, wanted": Case(
        "two.MustMood", {**N, "mood": TEXT}, n(9) + n(5, 2), BAD
    ),
    "a group": Case("two.MustGroup", N, tag(1, GROUP) + tag(1, END) + n(5, 2), (5,)),
    "a group that is missing": Case("two.MustGroup", N, n(5, 2), BAD),
}
OTHERS = {
    "a group that no column takes": Case(
        "two.All", {"f_int32": INT}, tag(121, GROUP) + n(1) + tag(121, END) + n(5), (5,)
    ),
    "a group for a column": Case(
        "two.All", {"g": TINY}, tag(121, GROUP) + n(1) + tag(121, END), UNFIT, "no column takes it"
    ),
    "a default": Case("two.All", {"f_int32": INT, "five": INT}, n(1), (1, None)),
    "absent, version 3": Case("three.All", {"f_int32": INT, "f_string": TEXT}, n(1, 2), (0, "")),
}


def tables() -> dict[str, Case]:
    each = {
        "merging": MERGED,
        "oneof": ONEOF,
        "map": MAPS,
        "enum": ENUMS,
        "UTF-8": UTF8,
        "required": REQUIRED,
        "else": OTHERS,
    }
    return {f"{what}: {name}": case for what, table in each.items() for name, case in table.items()}


@pytest.mark.parametrize("text", ["PROTOBUF: it has no end", '{"type": "record"}', "[]", "5"])
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    """A registry may have anything under the number that a record names."""
    decoded = Protobuf(pa.struct([*N.items()]), Settings(), schemas={7: text}).decode(
        pa.array([b"\0\0\0\0\7\0\x08\1"])
    )
    assert decoded.codes.to_pylist() == [UNFIT.code]
    settings = {"schema_file": text, "framing": "confluent"}
    with pytest.raises(Undecodable):
        reader(pa.schema([*N.items()]), ["n"], settings)(b"\0\x08\1")


@pytest.mark.parametrize("case", tables().values(), ids=tables())
def test_what_becomes_of_fields(case: Case) -> None:
    row = pa.struct([*case.row.items()])
    found = judged(case.message, row, case.value)
    assert repr(found) == repr(case.expected)
    google: Any = by_google(case.message, row, case.value)
    assert (repr(google) == repr(found)) == (not case.why), google
