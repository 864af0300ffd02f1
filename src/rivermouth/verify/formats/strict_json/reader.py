"""JSON records and message keys, read by docs/json.md: the strict rules, and what is allowed.

Every rule is told there, so that nothing is left that this reader cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import Reader
from rivermouth.verify.formats.strict_json.document import Pairs, pairs_of, text_of
from rivermouth.verify.formats.strict_json.settings import Settings, settings_of
from rivermouth.verify.formats.strict_json.spelling import speller
from rivermouth.verify.formats.strict_json.values import by_name, converter, fold


def reader(schema: pa.Schema, columns: Sequence[str], told: Mapping[str, Any]) -> Reader:
    """A reader of ``columns`` out of one JSON object, by the settings of an entry.

    See ``Reader``. Raises UnknownDecoder for settings that are not known.
    """
    settings = settings_of(told)
    folded = fold(settings)
    kinds = {name: schema.field(name).type for name in columns}
    wanted = {folded(name): converter(kind, settings) for name, kind in kinds.items()}
    in_order = [*wanted.items()]
    pairs = _anything(kinds, settings) if settings.anything_as_text else pairs_of

    def read(value: bytes) -> tuple[Any, ...]:
        found = by_name(pairs(text_of(value)), wanted, settings)
        values = [
            None if (held := found.get(name)) is None else convert(held)
            for name, convert in in_order
        ]
        return tuple(values)

    return read


def _anything(kinds: Mapping[str, pa.DataType], settings: Settings) -> Callable[[str], Pairs]:
    """Gives the pairs of a document whose columns of text take anything."""
    spell = speller(pa.struct([*kinds.items()]), fold(settings))

    def pairs(text: str) -> Pairs:
        found = pairs_of(text, spelt=True)
        flat = text.count("{") + text.count("[") == 1
        return found if flat else spell(text, 0)[0]

    return pairs
