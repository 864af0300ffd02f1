"""The rows of a partitioned table by their partition, and its values as Delta's log has them.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Partition Value Serialization".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rivermouth.warehouse.delta.statistics import Leaf

Partition = Mapping[str, str | None]
"""The value of each partition column, as text; None: null."""
Texts = Sequence[str | None]
Integers = npt.NDArray[np.int64]


_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_LONGEST = 200
"""Bytes of the name of a folder; most file systems take 255."""


def folder_of_partition(partition: Partition) -> str:
    """The folder of its files below the table, with a slash at its end; empty: the table's own.

    Named as Hive does. The log alone counts, but some readers take the values from these names.
    """
    names = (
        f"{_escaped(name)}={_NULL if value is None else _escaped(value)}"
        for name, value in partition.items()
    )
    return "".join(f"{_short(each)}/" for each in names)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _short(name: str) -> str:
    """The name, or one of its own that file systems take."""
    whole = name.encode()
    if len(whole) <= _LONGEST:
        return name
    return f"{whole[:100].decode(errors='ignore')}-{hashlib.sha256(whole).hexdigest()}"


def apart(
    rows: pa.Table, columns: Sequence[Leaf]
) -> Iterator[tuple[Partition, pa.Table, Integers]]:
    """The rows of each partition in their order, without the partition ``columns``; and their
    numbers.
    """
    names = [each.path[0] for each in columns]
    number, coded = np.zeros(rows.num_rows, np.int64), list[tuple[Texts, Integers]]()
    for leaf, name in zip(columns, names, strict=True):
        texts, places = _coded(rows.column(name).combine_chunks(), leaf.kind)
        coded.append((texts, places))
        number = np.unique(number * len(texts) + places, return_inverse=True)[1]
    kept, order = rows.drop_columns(names), np.argsort(number, kind="stable")
    begins = np.flatnonzero(np.diff(number[order], prepend=-1))
    for these in np.split(order, begins[1:]):
        values = [texts[places[these[0]]] for texts, places in coded]
        yield dict(zip(names, values, strict=True)), kept.take(pa.array(these)), these


def values_of(partition: Partition, types: pa.Schema) -> Mapping[str, pa.Scalar]:
    """Those of a partition's values whose columns ``types`` has.

    Not for the type TIMESTAMP: of a text without a zone nobody knows when it is.
    """
    return {
        name: _value(text or None, types.field(name).type)
        for name, text in partition.items()
        if name in types.names
    }


def _value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    if text is not None and (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        unit = "D" if pa.types.is_date(kind) else "us"
        # Arrow takes no text of a year above 9999.
        moment = np.array([text.replace(" ", "T")]).astype(f"datetime64[{unit}]")
        return pa.array(moment).cast(kind)[0]
    return pa.scalar(text, pa.string()).cast(kind)


def _coded(values: pa.Array, kind: str) -> tuple[Texts, Integers]:
    """The texts of the values, each once, and the place of each value among them."""
    found = values.dictionary_encode(null_encoding="encode")
    texts = list(_texts(found.dictionary, kind))
    once = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    places = np.array([once[each] for each in texts], np.int64)
    return [*once], places[found.indices.to_numpy()]


def _texts(values: pa.Array, kind: str) -> Iterator[str | None]:
    """Each value as text. To Delta an empty text is null."""
    for each in _plain(values, kind).to_pylist():
        if each is None or each == b"":
            yield None
        elif isinstance(each, bytes):  # Spark's STRING may hold any bytes
            yield each.decode("utf-8", "replace")
        elif kind in _TIMES:
            unit, template = _TIMES[kind]
            yield template(str(np.int64(each).astype(f"datetime64[{unit}]")))
        elif isinstance(each, bool):
            yield str(each).lower()
        else:
            yield format(each, "f") if isinstance(each, Decimal) else str(each)


def _plain(values: pa.Array, kind: str) -> pa.Array:
    """The values as what Python has, whatever they are: it has no time after the year 9999."""
    if kind == "string":
        return values.cast(pa.binary())
    if kind == "date":
        return values.view(pa.int32())
    return values.view(pa.int64()) if kind in _TIMES else values


_TIMES: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "date": ("D", str),
    "timestamp": ("us", lambda text: f"{text}Z"),
    "timestamp_ntz": ("us", lambda text: text.replace("T", " ")),
}
