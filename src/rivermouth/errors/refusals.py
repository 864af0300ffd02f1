"""What was asked for and cannot be done: nothing was changed."""

from __future__ import annotations

from rivermouth.errors.error import RivermouthError


class Refusal(RivermouthError):
    """It was asked for what cannot be done."""

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


class NotInferred(Refusal):
    code = "RM706"
    default_remedy = "Look at the records, and write the pipeline: rivermouth peek shows them"
