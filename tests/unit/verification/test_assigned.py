"""Assigned partitions: each pipeline is proved on its own, beside others on the same topic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config, Topics
from rivermouth.verification.kafka.readable import readable
from rivermouth.verification.ledger.coverage import Coverage
from rivermouth.verification.ledger.entry import Commit, Partition, parse_entry
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.result import Findings, PipelineProof
from tests.unit.verification.doubles import (
    CREATE,
    MemorySource,
    commit,
    configured,
    message,
    row,
    value,
    verification,
)
from tests.unit.verification.test_unchecked import KEYED, found

pytestmark = pytest.mark.unit

ONE, TWO = ("t", 1), ("t", 2)


def wrote(
    sequence: int,
    position: Mapping[int, int],
    spans: Mapping[int, int],
    *,
    pipeline: str = "p",
    assigned: bool = True,
) -> Commit:
    """A commit of one topic: positions and spans by partition."""
    ranges = [["t", each, position[each] - size, position[each]] for each, size in spans.items()]
    places = {"t": {str(each): at for each, at in position.items()}}
    more: dict[str, Any] = {"assigned": ["t"]} if assigned else {}
    return commit(sequence, 0, 0, pipeline=pipeline, ranges=ranges, position=places, **more)


def reading(config: Config, **assigned: tuple[int, ...] | None) -> Config:
    """Pipelines of one table, each with its partitions of the topic; None: with all of them."""
    ours = config.pipelines["p"]
    pipelines = {}
    for name, numbers in assigned.items():
        topics = Topics(("t",), assigned={} if numbers is None else {"t": numbers})
        source = ours.source.model_copy(update={"topics": topics})
        pipelines[name] = ours.model_copy(update={"name": name, "source": source})
    return config.model_copy(update={"pipelines": pipelines})


def rows(partition: Partition, *offsets: int) -> list[dict[str, Any]]:
    return [row(10 * partition[1] + each, 1, each, partition) for each in offsets]


SOURCE = MemorySource(
    {
        partition: [
            message(each, value(10 * partition[1] + each, 1), None, partition) for each in range(3)
        ]
        for partition in (("t", 0), ONE, TWO)
    }
)
OURS = [*rows(("t", 0), 0, 1, 2)]
MADE = [CREATE, wrote(1, {0: 3}, {0: 3})]
THEIRS = wrote(1, {1: 3}, {1: 3}, pipeline="q")
TARGETS = pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])


def checked(config: Config, held: Sequence[Any], commits: Sequence[Commit]) -> PipelineProof:
    return verification(config, SOURCE, held, commits)


@TARGETS
def test_the_rows_of_partitions_that_another_pipeline_reads_are_left_to_it(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    config = reading(configured(tmp_path, **target), p=(0,), q=(1,))
    proof = checked(config, [*OURS, *rows(ONE, 0, 1, 2)], [*MADE, THEIRS])
    assert (found(proof), proof.unchecked) == ({}, ())


def test_so_are_those_of_partitions_that_it_read_once(tmp_path: Path) -> None:
    config = reading(configured(tmp_path), p=(0,), q=(2,))
    proof = checked(config, [*OURS, *rows(ONE, 0, 1, 2)], [*MADE, THEIRS])
    assert (found(proof), proof.unchecked) == ({}, ())


@pytest.mark.parametrize("theirs", [(), (1,)], ids=["alone", "beside another"])
def test_a_row_of_a_partition_that_nobody_reads_is_unexpected(
    tmp_path: Path, theirs: tuple[int, ...]
) -> None:
    others = {"q": theirs} if theirs else {}
    config = reading(configured(tmp_path), p=(0,), **others)
    commits = [*MADE, THEIRS] if theirs else MADE
    proof = checked(config, [*OURS, *rows(TWO, 1)], commits)
    assert found(proof) == {"unexpected": 1}


def test_a_row_of_ours_that_no_range_covers_is_unexpected_though_another_claims_it(
    tmp_path: Path,
) -> None:
    config = reading(configured(tmp_path), p=(0,), q=(0, 1))
    proof = checked(config, [*OURS, *rows(("t", 0), 7)], [*MADE, THEIRS])
    assert found(proof) == {"unexpected": 1}


def test_rows_of_a_pipeline_of_which_clean_up_left_no_entry_are_unchecked(tmp_path: Path) -> None:
    config = reading(configured(tmp_path), p=(0,))
    commits = [wrote(4, {0: 3}, {0: 3})]
    proof = verification(config, SOURCE, [*OURS, *rows(ONE, 0, 1)], commits, first=5)
    assert found(proof) == {}
    assert "2 rows: log clean-up removed their entries" in proof.unchecked


@pytest.mark.parametrize(
    ("before", "expected"), [(True, {}), (False, {"gaps": 1})], ids=["assigned", "whole"]
)
def test_a_partition_may_begin_anywhere_only_if_it_was_left_out_on_purpose(
    tmp_path: Path, before: bool, expected: dict[str, int]
) -> None:
    first = wrote(1, {0: 3}, {0: 3}, assigned=before)
    later = wrote(2, {0: 3, 1: 3}, {1: 1}, assigned=not before)
    config = reading(configured(tmp_path), p=None)
    proof = checked(config, [*OURS, *rows(ONE, 2)], [CREATE, first, later])
    assert found(proof) == expected


@pytest.mark.parametrize(("numbers", "faults"), [((0,), 0), ((0, 1), 1)])
def test_of_a_deleted_topic_only_what_is_assigned_should_have_been_read(
    numbers: tuple[int, ...], faults: int
) -> None:
    made = wrote(1, {0: 3, 1: 2}, {0: 3, 1: 2})
    facts = json.loads(made.info["userMetadata"])
    facts["topics"]["t"]["ends"] = [0, 5]
    entry, findings = parse_entry(1, facts), Findings("p")
    topics = Topics(("t",), assigned={"t": numbers})
    ledger = Ledger(1, (entry,), (entry,))
    readable(ledger, Coverage((entry,)), MemorySource(topics={}), topics, findings)
    assert len(findings.proof().problems) == faults
