"""The tree's root, and most of its branches; the tree is drawn in ``rivermouth.errors``."""

from __future__ import annotations

import re

from rivermouth.errors.passing import Passing, of_python, of_the_disk

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class RivermouthError(Exception):
    """A code, an exit code, and facts: ``what`` (a clause), ``where`` (pipeline, table, file).

    ``passes`` says whether a run tries again.
    """

    code: str = "RM000"
    exit_code: int = 1
    default_remedy: str = ""
    default_passes: Passing = Passing.NO

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        found: str = "",
        remedy: str = "",
        passes: Passing | None = None,
    ) -> None:
        self.what, self.where, self.expected, self.found = what, where, expected, one_line(found)
        self.remedy = remedy or self.default_remedy
        self.passes = Passing.NO if of_the_disk(found) else passes or self.default_passes
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.code} {self.where + ': ' if self.where else ''}{self.what}"
        text += f"; expected {self.expected}" if self.expected else ""
        text += f"; found {self.found}" if self.found else ""
        return f"{text}. {self.remedy}" if self.remedy else text

    def as_dict(self) -> dict[str, str]:
        """The same facts for machines: code, what, where, expected, found, remedy."""
        facts = ("code", "what", "where", "expected", "found", "remedy")
        return {name: getattr(self, name) for name in facts}


def one_line(text: str) -> str:
    """What a foreign library said, in one line: no colours, no traces of where it said so."""
    plain = _ESCAPE.sub("", text).partition("stack backtrace:")[0]
    return " ".join("".join(each for each in word if each.isprintable()) for word in plain.split())


class ConfigError(RivermouthError):
    """The configuration is refused; ``problems`` lists every fault, one line each."""

    code = "RM100"
    exit_code = 2
    __str__ = Exception.__str__

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SourceError(RivermouthError):
    code = "RM300"


class KafkaUnreachable(SourceError):
    code = "RM301"
    default_remedy = "Check kafka.bootstrap.servers and that the broker is up"
    default_passes = Passing.YES


class TopicMissing(SourceError):
    code = "RM302"
    default_remedy = "Create the topic or correct source.topics; it is never created for you"
    default_passes = Passing.IF_IT_WORKED


class KafkaRefused(SourceError):
    code = "RM303"
    default_remedy = "Check the credentials and the rights on topic and cluster"


class KafkaUnsettled(SourceError):
    code = "RM304"
    default_remedy = "It passes by itself; if it stays, look for partitions without a leader"
    default_passes = Passing.YES


class CommitError(RivermouthError):
    code = "RM500"


class CommitUnknown(CommitError):
    code = "RM501"
    default_remedy = "Run again: the start reads the log and goes on from what stands there"
    default_passes = Passing.IF_IT_WORKED


class CommitFailed(CommitError):
    code = "RM502"
    default_remedy = "Nothing of this batch is visible; run again"
    default_passes = Passing.IF_IT_WORKED


class BatchFailed(CommitError):
    code = "RM503"
    default_remedy = "Nothing of this batch is visible; fix the cause and run again"
    default_passes = Passing.IF_IT_WORKED


class CommitConflict(CommitError):
    code = "RM504"
    default_remedy = "Let the other writers be done, or write less often there; then run again"
    default_passes = Passing.YES


class ProjectionFailed(CommitError):
    code = "RM505"
    default_remedy = "Run again: the start brings the offsets table up to date"
    default_passes = Passing.IF_IT_WORKED


class TransformFailed(CommitError):
    code = "RM506"
    default_remedy = "Nothing of this batch is written; correct the function and run again"
    default_passes = Passing.IF_IT_WORKED


class NotSent(CommitError):
    code = "RM507"
    default_remedy = (
        "Nothing is committed: the next run sends all of these records again. Fix the cause; for a"
        " record that is too large, raise max.request.size in the section kafka and"
        " max.message.bytes of the topic; for records that expired before a slow broker took them,"
        " raise delivery.timeout.ms in the section kafka"
    )
    default_passes = Passing.IF_IT_WORKED


class NotDelivered(CommitError):
    code = "RM508"
    default_remedy = (
        "Those that are not in the sink stay lost, as at-most-once says: read them with"
        " rivermouth.read, or write at-least-once. The next run goes on behind them"
    )


class StoreError(RivermouthError):
    code = "RM800"


class LogUnreadable(StoreError):
    code = "RM801"
    default_remedy = "Check that the store answers and that you may read the table; then run again"
    default_passes = Passing.IF_IT_WORKED


class OffsetsUnreadable(StoreError):
    code = "RM802"
    default_remedy = "Run again: the start brings the offsets table up to date"
    default_passes = Passing.IF_IT_WORKED


class Refusal(RivermouthError):
    code = "RM700"
    exit_code = 2


class QueryRefused(Refusal):
    code = "RM701"
    default_remedy = "Correct the statement"


class ResumeRefused(Refusal):
    code = "RM702"
    default_remedy = "See what a run says, and accept just that"


class ScaffoldRefused(Refusal):
    code = "RM703"
    default_remedy = "Choose a new or empty folder"


class RangesRefused(Refusal):
    code = "RM704"
    default_remedy = "Correct what is asked for"


class ReplayRefused(Refusal):
    code = "RM705"
    default_remedy = "Replay into another table: --into SCHEMA.TABLE"


class Unexpected(RivermouthError):
    code = "RM900"
    default_remedy = "Run it again; if the error comes back, report it"
    default_passes = Passing.IF_IT_WORKED


def as_ours(fault: BaseException, where: str) -> RivermouthError:
    """The error itself if it is one of ours; else ``Unexpected``, of which it is the cause."""
    if isinstance(fault, RivermouthError):
        return fault
    what, passes = "an error that nobody foresaw", of_python(type(fault))
    error = Unexpected(what, where=where, found=repr(fault), passes=passes)
    error.__cause__ = fault
    return error
