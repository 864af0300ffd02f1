"""Calling a pipeline's own code with the rows of a batch, and checking what it returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rivermouth.config import Pipeline
from rivermouth.config.transform import expressions
from rivermouth.errors import (
    Passing,
    RivermouthError,
    TransformFailed,
    of_python,
    of_text,
)
from rivermouth.formats.decoded import kafka_struct
from rivermouth.protocol.batch import Batch
from rivermouth.registry.references import own
from rivermouth.spark.address import quoted
from rivermouth.spark.causes import raised
from rivermouth.spark.errors import is_gone, reason, said
from rivermouth.spark.pythons import lacking
from rivermouth.write.transform.action import ACTION, unevaluable
from rivermouth.write.transform.coordinates import WRONG_ROW, checked
from rivermouth.write.transform.place import WRONG_PLACE
from rivermouth.write.transform.shape import RowsOfRecord, rows_of_record

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

    def blamed(self, fault: Exception, batch: Batch) -> TransformFailed | None:
        """Why a write failed, where that is the code's doing; else None."""
        text, explode = said(fault), self._pipeline.target.explode
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
        if isinstance(fault, RivermouthError) or is_gone(fault) or not _OF_CODE.search(text):
            return None
        if lacking(fault, "") is not None:  # the code may be right; it is not there, or its Python
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
        self,
        what: str,
        batch: Batch,
        *,
        expected: str = "",
        found: str = "",
        remedy: str = "",
        passes: Passing = Passing.NO,
    ) -> TransformFailed:
        moved = [str(each) for each in batch.ranges if each.span]
        more = f" and {len(moved) - _SHOWN} more" if len(moved) > _SHOWN else ""
        where = f"{self._pipeline.name} {self.name} on {', '.join(moved[:_SHOWN])}{more}"
        return TransformFailed(
            what, where=where, expected=expected, found=found, remedy=remedy, passes=passes
        )


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
