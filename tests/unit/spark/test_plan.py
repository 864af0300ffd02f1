"""The nodes of a plan's text, whatever the literals in it hold."""

from __future__ import annotations

import pytest

from rivermouth.spark.session import nodes

pytestmark = pytest.mark.unit

PLAN = (
    "Project [_kafka#7, replace(note#3, \n, ) AS note#9]\n"
    "+- Join Inner\n"
    "   :- Project [_kafka#7]\n"
    "   :  +- LogicalRDD [a#1, \u2028]\n"
    "   +- LocalRelation [b#2]\n"
)


def test_a_line_break_in_a_literal_ends_no_node() -> None:
    assert nodes(PLAN) == [
        "Project [_kafka#7, replace(note#3, , ) AS note#9]",
        "Join Inner",
        "Project [_kafka#7]",
        "LogicalRDD [a#1, \u2028]",
        "LocalRelation [b#2]",
    ]


def test_no_text_has_no_nodes() -> None:
    assert nodes("") == []
