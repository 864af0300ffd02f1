"""Calling a pipeline's own code with the rows of a batch, and checking what it returns.

Spark's optimizer may evaluate less than a function was given: a filter moves below the decoding,
a limit ends early. So a bad record is noticed on the way only if each row is made of its record
alone. Anything else takes the longer way, see ``landings.dataframe_writer``.

The rows are checked while they are written, and a wrong one fails the job: what own code made is no
record, so nothing of it goes to quarantine.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rivermouth.config import Pipeline, Target
from rivermouth.config.registry import own
from rivermouth.config.source import PLACE, kafka_struct
from rivermouth.config.transform import expressions
from rivermouth.errors import Passing, RivermouthError, TransformFailed, of_python, of_text
from rivermouth.formats.arrow import REFUSAL
from rivermouth.protocol.batches import Batch
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.errors import is_gone, lacking, raised, reason, said
from rivermouth.spark.session import analyzed
from rivermouth.spark.tables import literal, quoted

ACTION = "RM506: these rows are not to be evaluated"


def unevaluable(rows: DataFrame) -> DataFrame:
    """Rows with the same columns; to evaluate them fails. No record is read."""
    # A filter: a column would not be evaluated where only rows are counted.
    nothing = rows.sparkSession.range(1).where(F.raise_error(F.lit(ACTION)).isNotNull())
    columns = [F.lit(None).cast(each.dataType).alias(each.name) for each in rows.schema]
    return nothing.select(columns)


_NODE = re.compile(r"\w+")
_KAFKA = re.compile(r"_kafka#\d+")
_KEEPS = {"Project", "SubqueryAlias"}
_LEAVES_OUT = {*_KEEPS, "Filter"}
_REPEATS = {*_LEAVES_OUT, "Generate"}


class RowsOfRecord(Enum):
    """How many rows there can be of one record."""

    ONE = "one"
    AT_MOST_ONE = "at most one"
    SEVERAL = "any number, each made of its record alone"
    ANY = "any number"


def rows_of_record(made: DataFrame) -> RowsOfRecord:
    """How many rows of a record are in ``made``, which was made of rows with ``refusing``."""
    return judged(analyzed(made.select("_kafka")))


def judged(plan: Sequence[str]) -> RowsOfRecord:
    """The same, from the analyzed plan of the column ``_kafka`` alone.

    The nodes down to the one that holds the refusal are what the function added. The column must be
    the one that the refusal made: a copy of it could be made without evaluating it.
    """
    given = next((at for at, line in enumerate(plan) if REFUSAL in line), None)
    column = _KAFKA.search(plan[0]) if plan else None
    if given is None or column is None or f"AS {column[0]}" not in plan[given]:
        return RowsOfRecord.ANY
    nodes = {found[0] if (found := _NODE.match(line)) else line for line in plan[:given]}
    if nodes <= _KEEPS:
        return RowsOfRecord.ONE
    if nodes <= _LEAVES_OUT:
        return RowsOfRecord.AT_MOST_ONE
    return RowsOfRecord.SEVERAL if nodes <= _REPEATS else RowsOfRecord.ANY


WRONG_ROW = "RM506: a row that the batch cannot have"


def checked(ranges: Sequence[OffsetRange], *, once: bool) -> Column:
    """``_kafka`` of a row; evaluating a wrong one fails the job.

    ``once``: it is also wrong if another row has it. That takes a shuffle.
    """
    inside = F.coalesce(F.expr(within(ranges)), F.lit(False))
    kafka = F.col("_kafka")
    found = F.when(~inside, refusal(WRONG_ROW, "_kafka is not that of a record of this batch"))
    if once:
        rows = F.expr("count(1) over (partition by _kafka.topic, _kafka.partition, _kafka.offset)")
        found = found.when(rows > 1, refusal(WRONG_ROW, "a record has several rows"))
    return found.otherwise(kafka).alias("_kafka")


def within(ranges: Sequence[OffsetRange]) -> str:
    """A condition: the coordinates lie in one of ``ranges``; null where its topic is not there.

    A partition is looked up by its number, so many of them cost no more than few.
    """
    by_topic: dict[str, dict[int, OffsetRange]] = defaultdict(dict)
    for each in ranges:
        by_topic[each.topic][each.partition] = each
    cases = [
        f"when {literal(topic)} then _kafka.offset >= {_bound(found, 'from_offset')}"
        f" and _kafka.offset < {_bound(found, 'until_offset')}"
        for topic, found in by_topic.items()
    ]
    return f"case _kafka.topic {' '.join(cases)} end" if cases else "false"


def _bound(ranges: dict[int, OffsetRange], name: str) -> str:
    numbers = range(max(ranges) + 1)
    bounds = (getattr(ranges[each], name) if each in ranges else None for each in numbers)
    listed = ("null" if each is None else f"{each}L" for each in bounds)
    return f"get(array({', '.join(listed)}), _kafka.partition)"


def refusal(what: str, why: str) -> Column:
    """Evaluating it fails the job, which tells place and time of the row, and no message key."""
    place = F.struct(*(F.col("_kafka").getField(each).alias(each) for each in PLACE))
    shown = F.when(F.col("_kafka").isNotNull(), F.to_json(place))
    return F.raise_error(F.concat(F.lit(f"{what}: {why}: "), F.coalesce(shown, F.lit("null"))))


WRONG_PLACE = "RM506: a row that names no place to send it to"


def placed(target: Target) -> Column:
    """``_kafka`` of a row; evaluating that of a row which names no place fails the job."""
    found = F.col("_kafka")
    if target.partition_column is not None:
        negative = F.col(quoted(target.partition_column)) < 0
        found = F.when(negative, _refusal(target.partition_column, "is negative")).otherwise(found)
    if target.topic_column is not None:
        topic = F.col(quoted(target.topic_column))
        listed = F.coalesce(topic.isin(*(target.kafka or ())), F.lit(False))
        wrong = _refusal(target.topic_column, "names none of the topics in target.kafka")
        found = F.when(~listed, wrong).otherwise(found)
    return found.alias("_kafka")


def _refusal(column: str, why: str) -> Column:
    return refusal(WRONG_PLACE, f"{column} {why}")


Function = Callable[[DataFrame, Batch], DataFrame]

_SHOWN = 3
_CORRECT_SELECT = "Nothing of this batch is written; correct select and run again"
_OF_CODE = re.compile(r"PythonException|FAILED_EXECUTE_UDF|SQLSTATE: 22|Traceback \(most recent")
_OF_TEXT = re.compile(r"(Analysis|Parse)Exception")


@dataclass(frozen=True)
class Made:
    """What a function returned: the columns of the table, checked when they are evaluated.

    ``of_record``: how many rows of one record there can be. ``one_pass``: they may be written
    without looking for bad records first, and without counting records.
    """

    rows: DataFrame
    of_record: RowsOfRecord
    one_pass: bool


class Transform:
    """The own code of one pipeline. ``name`` is the function's, or ``select``.

    Raises MissingPackage where the function cannot be imported: before anything is read.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.name = pipeline.made_by
        self._pipeline = pipeline
        self._tried = False
        self._wanted: dict[str, str] = {}
        self._function = _function(pipeline)

    def made(self, rows: DataFrame, batch: Batch) -> Made:
        """What the function makes of the good rows of a batch. Nothing is evaluated here.

        ``rows`` have the configured columns and ``_kafka``, which is ``bad_records.refusing``. The
        first batch also calls the function with rows that cannot be evaluated, so that an action in
        it is noticed. Raises TransformFailed.
        """
        if not self._tried:
            self._call(unevaluable(rows), batch)
            self._tried = True
        found = self._call(rows, batch)
        self._check_columns(found, batch)
        of_record = rows_of_record(found)
        explode = self._pipeline.target.explode
        if self._pipeline.select:
            self._check_select(of_record, batch)
        several = of_record in (RowsOfRecord.SEVERAL, RowsOfRecord.ANY)
        kafka = checked(batch.ranges, once=several and not explode)
        names = [quoted(each.name) for each in self._pipeline.row_columns]
        # Rows do not tell how many records there were, if a record may have several.
        one_pass = of_record is RowsOfRecord.ONE and not explode
        return Made(found.select(*names, kafka), of_record, one_pass)

    @contextmanager
    def blamed(self, batch: Batch) -> Iterator[None]:
        """A block that evaluates rows of the code. Raises TransformFailed where the code fails."""
        try:
            yield
        except Exception as fault:
            failed = self._fault_of_code(fault, batch)
            if failed is None:
                raise
            raise failed from fault

    def _fault_of_code(self, fault: Exception, batch: Batch) -> TransformFailed | None:
        """Why a write failed, where that is the code's doing; else None."""
        text, explode = said(fault), self._pipeline.target.explode
        bad_record = f"] {REFUSAL}" in text  # it was raised, and not only shown in a plan
        if bad_record or isinstance(fault, RivermouthError) or is_gone(fault):
            return None
        if f"] {WRONG_ROW}" in text:
            return self._failed(
                "the rows returned are not those of records of the batch"
                if explode
                else "the rows returned are not one for each record at most",
                batch,
                expected="_kafka as it was given" + ("" if explode else ", in at most one row"),
                found=reason(fault).partition(f"{WRONG_ROW}: ")[2] or reason(fault),
            )
        if f"] {WRONG_PLACE}" in text:
            return self._failed(
                "a row names no place to send it to",
                batch,
                expected="a topic of target.kafka, and no negative partition",
                found=reason(fault).partition(f"{WRONG_PLACE}: ")[2] or reason(fault),
                remedy="Nothing of this batch is sent; let it name another place, or leave the row"
                " out, and run again",
            )
        # Where something is lacking, the code may be right; it is not there, or its Python.
        if not _OF_CODE.search(text) or lacking(fault, "") is not None:
            return None
        what = "it failed on a row"
        remedy = (
            "Nothing of this batch is written; let it give null for such a row (try_cast), or leave"
            " the row out, and run again"
        )
        in_worker = raised(text)
        passes = Passing.NO if "SQLSTATE: 22" in text else of_text(in_worker)
        found = in_worker or reason(fault)
        return self._failed(what, batch, found=found, remedy=remedy, passes=passes)

    def _call(self, rows: DataFrame, batch: Batch) -> DataFrame:
        try:
            found = self._function(rows, batch)
        except Exception as fault:
            if is_gone(fault) or isinstance(fault, RivermouthError):
                raise
            raise self._of_call(fault, batch) from fault
        if isinstance(found, type(rows)):
            return found
        kind = type(found).__name__
        raise self._failed("it returned no DataFrame", batch, expected="a DataFrame", found=kind)

    def _of_call(self, fault: Exception, batch: Batch) -> TransformFailed:
        if f"] {ACTION}" in said(fault):  # it was raised, and not only shown in a plan
            return self._failed(
                "it runs an action on its rows (count, collect, isEmpty, a write, …)",
                batch,
                expected="a DataFrame that is returned and not evaluated",
                remedy="Nothing of this batch is written; remove the action and run again",
            )
        kind = type(fault).__name__
        passes = Passing.NO if _OF_TEXT.search(kind) else of_python(type(fault))
        found = f"{kind}: {reason(fault)}" if kind not in reason(fault) else reason(fault)
        remedy = _CORRECT_SELECT if self._pipeline.select else ""
        return self._failed("it raised an error", batch, found=found, remedy=remedy, passes=passes)

    def _check_columns(self, found: DataFrame, batch: Batch) -> None:
        self._wanted = self._wanted or _types(_schema(found.sparkSession, self._pipeline))
        wanted = self._wanted
        types, names = _types(found.schema), found.columns
        twice = {each for each in names if names.count(each) > 1}
        wrong = [each for each in {**wanted, **types} if wanted.get(each) != types.get(each)]
        wrong += [each for each in types if each in twice and each not in wrong]
        if wrong:
            raise self._failed(
                "the rows returned have other columns than target.schema",
                batch,
                expected=_listed(wanted, wrong),
                found=_listed(types, wrong) + (", one of them twice" if twice else ""),
                remedy="Nothing of this batch is written; return these columns and types (cast), or"
                " correct target.schema",
            )

    def _check_select(self, of_record: RowsOfRecord, batch: Batch) -> None:
        may_repeat = self._pipeline.target.explode
        most = RowsOfRecord.SEVERAL if may_repeat else RowsOfRecord.ONE
        if of_record not in (RowsOfRecord.ONE, most):
            said_more = "" if may_repeat else ", or makes several rows of one"
            of_many = "aggregates, windows" + ("" if may_repeat else ", explode")
            raise self._failed(
                f"an expression looks at other rows{said_more}",
                batch,
                expected="expressions over the columns of one record",
                remedy=f"Nothing of this batch is written; remove {of_many} and sub-queries, or"
                " write a transform",
            )

    def _failed(
        self, what: str, batch: Batch, passes: Passing = Passing.NO, **facts: str
    ) -> TransformFailed:
        moved = [str(each) for each in batch.ranges if each.span]
        more = f" and {len(moved) - _SHOWN} more" if len(moved) > _SHOWN else ""
        where = f"{self._pipeline.name} {self.name} on {', '.join(moved[:_SHOWN])}{more}"
        return TransformFailed(what, where=where, passes=passes, **facts)


def transform_of(pipeline: Pipeline) -> Transform | None:
    """The own code of a pipeline; None where its rows are the records."""
    return Transform(pipeline) if pipeline.made_by else None


def _schema(session: SparkSession, pipeline: Pipeline) -> StructType:
    columns = [f"{quoted(each.name)} {each.type}" for each in pipeline.row_columns]
    kafka = f"_kafka {kafka_struct(pipeline.source.metadata)}"
    return session.createDataFrame([], ", ".join([*columns, kafka])).schema


def _types(schema: StructType) -> dict[str, str]:
    return {each.name: each.dataType.simpleString() for each in schema}


def _listed(types: dict[str, str], names: Sequence[str]) -> str:
    return ", ".join(f"{each} {types.get(each, 'not there')}" for each in names)


def _function(pipeline: Pipeline) -> Function:
    if pipeline.select:
        listed = expressions(pipeline.select)
        return lambda rows, batch: rows.selectExpr(*listed, "_kafka")
    function: Function = own(pipeline.made_by)
    return function
