"""What ``verify`` cannot check it counts and names; what it can check it does not leave out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config, Topics
from rivermouth.verification.ledger.entry import Commit, Partition
from rivermouth.verification.proofs import offsets_table as compared
from rivermouth.verification.result import PipelineProof
from tests.unit.verification.doubles import (
    CREATE,
    MemorySource,
    commit,
    configured,
    entry,
    message,
    row,
    span,
    subject,
    value,
    verification,
)
from tests.unit.verification.offsets_rows import offsets_rows, offsets_table

pytestmark = pytest.mark.unit

KEYED: Mapping[str, Any] = {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}
OTHER: Partition = ("other", 0)


def wrote(sequence: int, start: int, until: int, topic: str = "t", **more: Any) -> Commit:
    """A commit that also tells where the log of its topic ended."""
    ends = {topic: {"0": until}}
    return commit(sequence, start, until, topic=topic, **{"ends": ends, **more})


def found(proof: PipelineProof) -> dict[str, int]:
    """What was found, without the offsets table, which has no rows here."""
    counts = {kind.value: number for kind, number in proof.counts.items() if number}
    counts.pop("offsets_table_differences", None)
    return counts


def records(*numbers: int) -> list[Any]:
    return [message(each, value(each, 1)) for each in numbers]


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [row(each, 1, each) for each in numbers]


# Quarantine


def bad(offset: int, content: bytes | None, key: bytes | None = None) -> dict[str, Any]:
    place = {"topic": "t", "partition": 0, "offset": offset}
    return {"commit": "p-1", **place, "key": key, "value": content}


@pytest.mark.parametrize(
    ("content", "key", "wrong"),
    [
        (b'{"id":1,"n":2}', None, 1),
        (b'{"id":1}', None, 1),
        (b'{"id":1,"n":2.0}', None, 1),
        (b"{'id':1,'n':2} and more", None, 0),
        (b'{"id":1,"n":"2"}', None, 0),
        (b'{"id":1,"n":2', None, 0),
        (b'{"id":null,"n":2}', None, 0),
        (b"", None, 0),
        (None, b"7", 1),
        (None, b"seven", 0),
        (None, None, 0),
    ],
)
def test_a_record_in_quarantine_that_can_be_decoded_is_a_fault(
    tmp_path: Path, content: bytes | None, key: bytes | None, wrong: int
) -> None:
    config = configured(tmp_path, key="string", **KEYED)
    source = MemorySource({("t", 0): [message(0, content, key)]})
    proof = verification(config, source, [], [CREATE, wrote(1, 0, 1)], [bad(0, content, key)])
    assert found(proof) == ({"wrongly_quarantined": 1} if wrong else {})
    assert proof.ok is not wrong


# Neighbours


NEIGHBOUR = wrote(1, 0, 2, pipeline="q", topic="other")
THEIRS = [row(each, 9, each, OTHER) for each in range(2)]
OURS = [CREATE, wrote(1, 0, 4)]


def with_q(config: Config, *topics: str) -> Config:
    """A second pipeline of the same table."""
    ours = config.pipelines["p"]
    its = ours.source.model_copy(update={"topics": Topics(topics)})
    other = ours.model_copy(update={"name": "q", "source": its})
    return config.model_copy(update={"pipelines": {"p": ours, "q": other}})


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
def test_rows_of_a_pipeline_that_is_no_longer_configured_are_counted_as_unchecked(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    source = MemorySource({("t", 0): records(0, 1, 2, 3)})
    theirs = [row(each, 9, each - 7, OTHER) for each in (7, 8)]
    config = configured(tmp_path, **target)
    proof = verification(config, source, [*rows(0, 1, 2, 3), *theirs], [*OURS, NEIGHBOUR])
    assert found(proof) == {}
    assert proof.unchecked == ("2 rows: their pipelines are no longer configured",)


def test_rows_of_a_topic_that_a_neighbour_read_once_are_left_to_its_verification(
    tmp_path: Path,
) -> None:
    source = MemorySource({("t", 0): records(0, 1, 2, 3)})
    config = with_q(configured(tmp_path), "new")
    proof = verification(config, source, [*rows(0, 1, 2, 3), *THEIRS], [*OURS, NEIGHBOUR])
    assert (found(proof), proof.unchecked) == ({}, ())


def test_a_row_that_no_range_of_a_retired_pipeline_covers_is_still_unexpected(
    tmp_path: Path,
) -> None:
    source = MemorySource({("t", 0): records(0, 1, 2, 3)})
    stray = row(9, 9, 50, OTHER)
    proof = verification(
        configured(tmp_path), source, [*rows(0, 1, 2, 3), stray], [*OURS, NEIGHBOUR]
    )
    assert found(proof) == {"unexpected": 1}


def test_rows_of_a_topic_of_which_clean_up_left_no_entry_are_unchecked(tmp_path: Path) -> None:
    source = MemorySource({("t", 0): records(0, 1, 2, 3)})
    log = [wrote(1, 0, 4)]
    all_rows = [*rows(0, 1, 2, 3), *THEIRS]
    proof = verification(configured(tmp_path), source, all_rows, log, first=5)
    assert found(proof) == {}
    assert "2 rows: log clean-up removed their entries" in proof.unchecked


# Compaction


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
def test_every_row_is_looked_up_that_compaction_may_explain(
    tmp_path: Path, target: Mapping[str, Any]
) -> None:
    """Of these rows the last hundred come from aborted records."""
    topic = frozenset({"t"})
    aborted = frozenset({(("t", 0), each) for each in range(200, 300)})
    source = MemorySource(compacted=topic, aborted=aborted)
    log = [CREATE, wrote(1, 0, 300)]
    proof = verification(configured(tmp_path, **target), source, rows(*range(300)), log)
    assert found(proof) == {"unexpected": 100}
    assert any(line.startswith("200 ") for line in proof.unchecked)


# The offsets table


def projected(commits: int, partitions: int) -> tuple[list[Commit], list[dict[str, Any]]]:
    """A log of empty ranges, and the rows of the offsets table for it."""
    log = [CREATE]
    for sequence in range(1, commits + 1):
        ranges = [["t", each, 0, 0] for each in range(partitions)]
        position = {"t": {str(each): 0 for each in range(partitions)}}
        log.append(wrote(sequence, 0, 0, ranges=ranges, position=position, ends=position))
    return log, offsets_rows(log)


def test_the_offsets_table_is_compared_with_every_range_once(tmp_path: Path) -> None:
    log, table = projected(3, 4)
    table[0]["records"] = 5
    table[5]["sequence"] = 9
    table.append({**table[7]})
    offsets = offsets_table(table)
    proof = verification(configured(tmp_path), MemorySource(), [], log, projected=offsets)
    assert sorted(proof.problems) == [
        "offsets table, sequence 1 t-0: records is 5, expected 0",
        "offsets table, sequence 2 t-1: no row",
        "offsets table, sequence 2 t-3: more than one row",
        "offsets table, sequence 9 t-1: no such range in the ledger",
    ]


def test_the_time_for_the_offsets_table_grows_with_its_rows_and_not_with_their_square(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path)

    def seconds(ranges: int) -> float:
        entries = [entry(n, span(2 * n, 2 * n + 2)) for n in range(1, ranges)]
        asked = subject(config, MemorySource(), *entries)
        began = time.process_time()
        for each in entries:
            compared._counts(each, each.ranges[0], asked)
        return time.process_time() - began

    assert seconds(40_000) < 8 * max(seconds(10_000), 0.02)


# Decoders


@pytest.mark.parametrize("target", [{}, KEYED], ids=["append", "upsert"])
def test_a_version_of_a_decoder_that_is_not_known_is_named_and_no_record_is_judged(
    target: Mapping[str, Any], tmp_path: Path
) -> None:
    log = [CREATE, wrote(1, 0, 1), wrote(2, 1, 3, decoder={"version": 9})]
    source = MemorySource({("t", 0): [*records(0, 1), message(2, b"?")]})
    quarantine = [{**bad(2, b"?"), "commit": "p-2"}]
    proof = verification(configured(tmp_path, **target), source, rows(0, 1), log, quarantine)
    [line] = [each for each in proof.problems if "decoded" in each]
    assert "entry 2 was decoded by version 9 of json" in line
    assert line.endswith("upgrade rivermouth")
    assert "the rows" in proof.unchecked
    assert not any(each.startswith("t-0@") for each in proof.problems), "no record is judged"
