"""What a shape gives to a landing: rows to add, one change per key, or rows to send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame

from rivermouth.formats.sieve import Sieve
from rivermouth.registry.references import Reference
from rivermouth.write.transform.transform import Transform

RECORDS = "records"
"""The column of a fold that counts the rows of a key."""


@dataclass(frozen=True)
class Plain:
    """Each good record becomes one row.

    ``columns`` are those of the table without ``_kafka``, over a decoded batch (``formats``).
    They are built once per pipeline: each is many calls into the JVM. ``transform`` makes of them
    what the table gets; None: they are it.
    """

    columns: Sequence[Column]
    transform: Transform | None = None


@dataclass(frozen=True)
class Partly:
    """A fold in two steps: tasks make the first one while they decode.

    ``before`` makes of Kafka's rows some with ``_kafka`` STRUCT<topic, partition>, ``records``, how
    many of them each stands for, and what ``fold`` asks for. It fails by
    ``formats.in_arrow.REFUSAL`` at a bad record, or gives it to a sieve. ``fold`` makes of these
    what ``Keyed.fold`` makes of the records.
    """

    before: Callable[[DataFrame, Sieve | None], DataFrame]
    fold: Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Keyed:
    """The good records of a batch become one change per key.

    ``fold`` makes of good decoded rows a DataFrame with one row per key: ``key_columns``, a
    struct of the ``keys``, ``records``, the number of rows with that key, and whatever the
    expressions below ask for. These are SQL over ``s``, a row of the fold, and ``t``, the row of
    the table with that key. In this order: where ``delete`` holds, the row goes; where ``update``
    holds, ``updates`` give its columns; where no row has the key and ``insert`` holds, ``inserts``
    give the new one. A shape that never deletes or never updates leaves ``delete`` or ``update`` at
    None. Where ``overflows`` holds, a value of the row would not fit into its column; ``updates``
    and ``inserts`` fail there by ``formats.in_arrow.REFUSAL``, and the records of the key are bad.
    ``reads`` are the columns of ``row`` that ``fold`` reads, beside the key; None: all.
    ``ordered``: it reads the whole ``_kafka``; else no more than topic and partition.
    ``partly``: the same fold in two steps; None where there is none.
    """

    keys: tuple[str, ...]
    fold: Callable[[DataFrame], DataFrame]
    inserts: Mapping[str, str]
    insert: str = "true"
    update: str | None = None
    updates: Mapping[str, str] = field(default_factory=dict)
    delete: str | None = None
    overflows: str | None = None
    reads: frozenset[str] | None = None
    ordered: bool = True
    partly: Partly | None = None


@dataclass(frozen=True)
class Sent:
    """Each good record is sent to a sink, and the table gets no row.

    ``sink`` is ``(write.landing.Site) -> write.sinks.sink.Sink``. ``first``: it is sent before the
    commit of its batch, else after it. ``transform`` makes of the records what is sent; None: they
    are it.
    """

    sink: Reference
    first: bool
    transform: Transform | None = None


Rows = Plain | Keyed | Sent
