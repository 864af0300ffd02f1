"""Records that Kafka deletes while they are verified: left out, and held against no table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verify.pipeline import verify_pipeline
from rivermouth.verify.proofs.proof import Bounds
from rivermouth.verify.result import Kind, PipelineProof, Unchecked
from tests.unit.verify.doubles import (
    CREATE,
    QUARANTINE,
    SCHEMA,
    ZERO,
    Expiring,
    MemoryCommits,
    MemoryRows,
    MemorySource,
    MemoryTables,
    commit,
    configured,
    message,
    row,
    value,
)
from tests.unit.verify.offsets_rows import offsets_rows

pytestmark = pytest.mark.unit

RECORDS, GONE = 6, 3
"""The entry has so many records; so many are gone once the first offsets have been asked for."""
IDS = [0, 1, 2, 0, 1, 3]
TOTALS = pa.schema([("id", pa.int64()), ("c", pa.int64())])

MODES: Mapping[str, tuple[Mapping[str, Any], list[dict[str, Any]], pa.Schema]] = {
    "append": ({}, [row(id_, 1, at) for at, id_ in enumerate(IDS)], SCHEMA),
    "upsert": ({"keys": ["id"]}, [row(IDS[at], 1, at) for at in (2, 3, 4, 5)], SCHEMA),
    "insert": ({"keys": ["id"]}, [row(IDS[at], 1, at) for at in (0, 1, 2, 5)], SCHEMA),
    "aggregate": (
        {"keys": ["id"], "metrics": {"c": "count()"}},
        [{"id": id_, "c": IDS.count(id_)} for id_ in range(4)],
        TOTALS,
    ),
}


def verified(folder: Path, mode: str, source: MemorySource) -> PipelineProof:
    target, rows, schema = MODES[mode]
    config = configured(folder, mode=mode, **target)
    commits = [CREATE, commit(1, 0, RECORDS)]
    projected = offsets_rows(commits)
    tables = MemoryTables(
        {
            "t.p": MemoryRows(rows, schema, txn=1),
            "t.p_quarantine": MemoryRows([], QUARANTINE),
            "rivermouth.offsets": MemoryRows(projected, pa.Table.from_pylist(projected).schema),
        },
        {"t.p": MemoryCommits(commits)},
    )
    pipeline = config.pipelines["p"]
    return verify_pipeline(config, tables, pipeline, source, lambda *told: None, Bounds(1000, 2))


@pytest.mark.parametrize("mode", MODES)
def test_what_expires_while_it_is_verified_is_left_out_and_no_finding(
    tmp_path: Path, mode: str
) -> None:
    left = [message(at, value(IDS[at], 1)) for at in range(GONE, RECORDS)]

    proof = verified(tmp_path, mode, Expiring({ZERO: left}, gone={ZERO: GONE}))

    assert proof.problems == ()
    assert proof.left[Unchecked.EXPIRED] == GONE
    assert proof.unchecked[0] == f"t-0[0,{GONE}): expired in Kafka"
    # The same records, of which Kafka says that it holds all: something is wrong.
    held = verified(tmp_path, mode, MemorySource({ZERO: left}))
    assert not held.ok
    assert held.counts[Kind.OFFSETS_TABLE] == 1


@pytest.mark.parametrize("mode", MODES)
def test_while_nothing_expires_all_is_checked(tmp_path: Path, mode: str) -> None:
    records = [message(at, value(id_, 1)) for at, id_ in enumerate(IDS)]
    proof = verified(tmp_path, mode, MemorySource({ZERO: records}))
    assert (proof.problems, proof.complete) == ((), True)
