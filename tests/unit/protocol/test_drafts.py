"""Which drafts name the decoder: all that are made from the configuration, as they do columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.config.formats import FORMATS
from rivermouth.protocol.drafts import accepting_draft, changing_draft, next_draft, still_draft
from rivermouth.protocol.entry import Accepted, Change, Changes, Draft, Move
from rivermouth.protocol.entry_json import from_json, to_json
from rivermouth.protocol.history import Left
from rivermouth.protocol.kafka_facts import KafkaFacts
from tests.builders import TABLE, TableLog, place, position, replayed, span

pytestmark = pytest.mark.unit

KAFKA = KafkaFacts("c", {"t": "id"}, {})
LOG = TableLog().wrote(span(0, 5))
HISTORY = replayed(LOG.records)
BOTH = ["key", "headers"]
TOLD = {"lenient": ["any_case"], "timestamps": {"unit": "ms"}}


def pipeline(**source: Any) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "orders",
            "source": {"topics": ("t",), "format": "json", **source},
            "ddl": "id BIGINT",
            "target": {"table": "silver.orders"},
        }
    )


def made(by: Pipeline) -> dict[str, Draft]:
    """A draft of each kind that is made from the configuration."""
    moved = Changes((Change.TRUNCATION,), moved=(Move(place(), 5, 1),))
    restored, left = Accepted("restore", 3, 1), Left(position(5))
    return {
        "a batch": next_draft(HISTORY, TABLE, by, KAFKA, (span(5, 9),)),
        "a heartbeat": next_draft(HISTORY, TABLE, by, KAFKA, (span(5, 5),)),
        "a rollback": accepting_draft(HISTORY, TABLE, by, KAFKA, 2, left, restored),
        "a change": changing_draft(HISTORY, TABLE, by, KAFKA, moved),
    }


def drafted(draft: Draft) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(to_json(draft.entry("id", 1, None)))
    return found


def test_version_1_without_settings_is_not_named() -> None:
    for draft in made(pipeline()).values():
        assert (draft.decoder, "decoder" in drafted(draft)) == ({}, False)


@pytest.mark.parametrize("kind", ["a batch", "a heartbeat", "a rollback", "a change"])
def test_settings_and_a_later_version_are_named_beside_the_columns(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = made(pipeline(lenient=["any_case"], timestamps={"unit": "ms"}))[kind]
    assert (draft.columns, draft.decoder) == ((("id", "BIGINT"),), TOLD)
    assert drafted(draft)["decoder"] == TOLD
    second = replace(FORMATS.by_name["json"], version=2)
    monkeypatch.setitem(FORMATS.by_name, "json", second)
    assert drafted(made(pipeline())[kind])["decoder"] == {"version": 2}


@pytest.mark.parametrize("kind", ["a batch", "a heartbeat", "a rollback", "a change"])
def test_metadata_are_told_where_rows_have_them(kind: str) -> None:
    assert drafted(made(pipeline(metadata=["headers", "key"]))[kind])["metadata"] == BOTH
    assert "metadata" not in drafted(made(pipeline())[kind])
    assert pipeline(metadata=BOTH).identity == pipeline().identity


def test_an_entry_that_was_not_decoded_anew_repeats_the_decoder_of_the_newest() -> None:
    newest = LOG.newest
    assert newest is not None
    told = replace(newest, decoder=TOLD)
    draft = still_draft(HISTORY, told, TABLE)
    assert draft.decoder == TOLD
    entry = draft.entry("id", 1, None)
    assert from_json(to_json(entry)) == entry
