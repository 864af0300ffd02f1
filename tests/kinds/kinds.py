"""A format, a shape and a landing that the package does not have: one registration for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rivermouth.config.formats import FORMATS, Format
from rivermouth.config.platforms import Capability
from rivermouth.config.registry import LANDINGS, SHAPES, Landing, Shape

PAIRS = Format(
    name="pairs",
    decoder="tests.kinds.pairs:decoder",
    reader="tests.kinds.pairs_reader:reader",
    reasons={"RM603": "the value is not a list of name=value that fits the configured schema"},
)
INSERT = Shape(
    name="first_seen",
    summary="keep the first row of each key",
    changes="tests.kinds.insert:insert",
    proof="tests.kinds.insert_proof:verify_insert",
    keyed=True,
)
STAGED = Landing(
    name="staged_insert",
    keyed=False,
    needs=frozenset({Capability.JVM}),
    make="tests.kinds.staged_insert:StagedInsert",
)


def register() -> None:
    """Make all three known."""
    FORMATS.register(PAIRS)
    SHAPES.register(INSERT)
    LANDINGS.register(STAGED)


@contextmanager
def registered() -> Iterator[None]:
    """All three are known in this process until the block ends."""
    before = dict(FORMATS.by_name), dict(SHAPES.by_name), list(LANDINGS.in_order)
    register()
    try:
        yield
    finally:
        FORMATS.by_name, SHAPES.by_name, LANDINGS.in_order = before
