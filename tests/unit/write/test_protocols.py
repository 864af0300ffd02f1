"""The features of a protocol: all are told, and those on the list allow commits."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermouth.protocol.ways import FEATURES, why_not
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.write.files.table import FilesTable

pytestmark = pytest.mark.unit

OF_READERS = {
    *("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint"),
    "variantType",
}


def with_protocol(folder: Path, writer: int, features: list[str]) -> FilesTable:
    """An empty table with this protocol, which needs no more of a reader than its features do."""
    DeltaTable.create(str(folder), pa.schema([("n", pa.int64())]))
    log = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text("utf-8").split("\n") if line]
    read = [each for each in features if each in OF_READERS]
    protocol = {"minReaderVersion": 3 if read else 1, "minWriterVersion": writer}
    listed = {"writerFeatures": features} if writer == 7 else {}
    listed |= {"readerFeatures": read} if read else {}
    changed = [{"protocol": protocol | listed} if "protocol" in each else each for each in actions]
    log.write_text("\n".join(map(json.dumps, changed)), encoding="utf-8")
    return FilesTable(Store.of_folder(folder), "p")


@pytest.mark.parametrize(
    ("writer", "features"),
    [(2, []), (3, []), (4, []), *((7, [each]) for each in sorted(FEATURES)), (7, sorted(FEATURES))],
)
def test_what_is_understood_can_be_committed_to(
    tmp_path: Path, writer: int, features: list[str]
) -> None:
    table = with_protocol(tmp_path, writer, features)
    table.newest()
    assert table.definition().features == {*features}
    assert why_not(table.definition()) == ""
    table.also(Commit("WRITE", txns={"rivermouth/p": 1}))
    assert (table.newest(), table.txn("rivermouth/p")) == (1, 1)


@pytest.mark.parametrize(
    "feature",
    [
        "allowColumnDefaults",
        "columnMapping",
        "icebergCompatV1",
        "identityColumns",
        "inCommitTimestamp",
        "ofALaterDay",
        "rowTracking",
        "typeWidening",
        "v2Checkpoint",
    ],
)
def test_no_feature_is_passed_over(tmp_path: Path, feature: str) -> None:
    table = with_protocol(tmp_path, 7, [feature, "appendOnly"])
    table.newest()
    assert why_not(table.definition()) == f"the table has the feature {feature}"


def test_a_table_with_vectors_that_delta_rs_alters_is_still_understood(tmp_path: Path) -> None:
    """It adds features to the protocol that nobody has asked for."""
    table = with_protocol(tmp_path, 7, ["appendOnly", "deletionVectors", "invariants"])
    DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.checkpointInterval": "5"})
    table.newest()
    assert table.definition().checkpoint_interval == 5
    assert why_not(table.definition()) == ""
