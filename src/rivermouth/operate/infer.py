"""Pipelines from samples of topics: what their records are, and which columns take them.

Asks Kafka, and the registry where values name schemas. Starts no JVM, joins no group, writes
nothing. Each pipeline is tried: the product's own decoder reads the samples by it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from rivermouth.config import Config, Secrets, load
from rivermouth.errors import ConfigError, NotInferred
from rivermouth.formats.arrow import SKIPPED
from rivermouth.operate.by_schema import Schemas, draft_by_schema, numbers_in_headers
from rivermouth.operate.by_values import draft_by_values
from rivermouth.operate.drafts import Connection, Draft, file_text, flow
from rivermouth.operate.facts import connected
from rivermouth.operate.sample import decoded_messages
from rivermouth.protocol.offsets import TopicPartition, Watermarks
from rivermouth.schemas.inferred import Field
from rivermouth.schemas.key_evidence import Candidate, candidates, key_names
from rivermouth.schemas.recognized import Kind, framed, recognize

_REASONS = 3
_KEY = "Write --key with its columns"


@dataclass(frozen=True)
class Tried:
    """A draft, and what it makes of the samples: so many are taken, of so many with a value.

    ``reasons`` are why others are not; ``keys`` may be those of its rows. Where not ``ordered``, a
    sample does not tell all columns that put records in order.
    """

    draft: Draft
    taken: int
    samples: int
    reasons: tuple[str, ...]
    keys: tuple[Candidate, ...]
    ordered: bool = True

    @property
    def evidence(self) -> tuple[str, ...]:
        """What was seen, in lines."""
        its = self.draft
        words = (its.source[each] for each in ("format", "envelope") if each in its.source)
        framing = f", framing {its.source['framing']}" if "framing" in its.source else ""
        return (
            f"{its.topic}: {', '.join(words)}{framing}, {its.mode};"
            f" {self.taken:,} of {self.samples:,} samples are taken",
            *(f"not taken: {each}" for each in self.reasons),
            *(f"key candidate {each.evidence}" for each in self.keys),
        )

    @property
    def said(self) -> tuple[str, ...]:
        """What the columns alone do not say: what else the pipeline has, and the notes."""
        its = self.draft
        sections = {"source": its.source, "columns": its.placed, "each": its.each}
        given = (f"{name}: {flow(value)}" for name, value in sections.items() if value)
        return (*self.evidence, *given, *its.notes)

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        its = self.draft
        return {
            "topic": its.topic,
            "samples": self.samples,
            "taken": self.taken,
            "not_taken": [*self.reasons],
            "source": dict(its.source),
            "schema": its.schema,
            "columns": its.placed,
            "each": its.each or None,
            "target": its.target,
            "keys": [{"columns": [*each.columns], "evidence": each.evidence} for each in self.keys],
            "notes": [*its.notes],
        }

    @property
    def commented(self) -> Draft:
        """The draft with what was seen."""
        return replace(self.draft, evidence=self.evidence)


def configured(connection: Connection, drafts: Sequence[Draft], file: str) -> Config:
    """The file as the product loads it; its problems name ``file``. Raises ConfigError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lake.yml"
        path.write_text(file_text(connection, drafts), encoding="utf-8")
        try:
            return load(path)
        except ConfigError as error:
            named = (each.replace(str(path), file) for each in error.problems)
            raise ConfigError(tuple(named)) from None


def sample_ranges(
    marks: Mapping[TopicPartition, Watermarks], most: int
) -> list[dict[TopicPartition, tuple[int, int]]]:
    """The ranges of the first and of the newest offsets of partitions, ``most`` in all."""
    there = [(place, its) for place, its in sorted(marks.items()) if its.low < its.high]
    there = there[:: -(-2 * len(there) // most) or 1]
    each = max(1, most // max(1, 2 * len(there)))
    first = {place: (its.low, min(its.low + each, its.high)) for place, its in there}
    newest = {
        place: (max(its.high - each, first[place][1]), its.high)
        for place, its in there
        if first[place][1] < its.high
    }
    return [ranges for ranges in (first, newest) if ranges]


class Inference:
    """Of some topics of one cluster; ``most`` records of each are looked at.

    Raises SourceError where Kafka or the registry is away, or a topic is not there.
    """

    def __init__(
        self, connection: Connection, topics: Sequence[str], most: int, secrets: Secrets
    ) -> None:
        self._connection, self._secrets = connection, secrets
        raw = [Draft(each, {"format": "raw"}, (Field("value", "BINARY"),)) for each in topics]
        self._config = configured(connection, raw, "options")
        kafka = connected(self._config, secrets)
        marks = kafka.facts(topics).watermarks
        self._schemas = Schemas(self._config, secrets)
        self._samples: dict[str, list[Message]] = {each: [] for each in topics}
        for topic, its in self._samples.items():
            own = {place: each for place, each in marks.items() if place.topic == topic}
            for ranges in sample_ranges(own, most):
                its += kafka.records_within(ranges)

    def of(self, topic: str, *, append: bool = False) -> Tried:
        """The pipeline of a topic. Events become rows by key, if not ``append``; all else is
        appended. Raises NotInferred where nobody can tell it.
        """
        messages = self._samples[topic]
        if not messages:
            raise NotInferred("it has no record", where=topic)
        valued = [each for each in messages if each.value() is not None]
        if not valued:
            raise NotInferred("none of its records has a value", where=topic)
        draft = self._draft(topic, valued, append)
        found = self._tried(draft)
        if not draft.order:
            return found
        plain = self._tried(replace(draft, order=()))
        return found if found.taken == plain.taken and found.ordered else plain

    def keyed(self, tried: Tried, keys: Sequence[str]) -> Tried:
        """The same with the newest row of each key; ``keys`` are columns of it.

        Raises NotInferred where they can be no key.
        """
        draft = tried.draft
        known = [each.name for each in draft.fields]
        strange = [each for each in keys if each not in known]
        if strange:
            what = f"it has no column {', '.join(strange)}"
            raise NotInferred(what, where=draft.topic, found=", ".join(known), remedy=_KEY)
        held = [each.form for each in tried.keys if each.columns == tuple(keys) and each.form]
        source = {**draft.source, **({"key": held[0]} if held else {})}
        return self._tried(replace(draft, source=source, mode="upsert", keys=tuple(keys)))

    def _tried(self, draft: Draft) -> Tried:
        """Raises NotInferred where it takes no sample."""
        messages = self._samples[draft.topic]
        try:
            [pipeline] = configured(self._connection, [draft], draft.topic).pipelines.values()
        except ConfigError as error:
            raise NotInferred(
                "no pipeline takes it", where=draft.topic, found=str(error)
            ) from error
        config = self._config
        told = decoded_messages(config, pipeline, messages, self._secrets)
        pairs = [*zip(told["code"], told["reason"], strict=True)]
        means = pipeline.format.all_reasons
        bad = Counter(f"{code} {why or means.get(code)}" for code, why in pairs if _is_bad(code))
        good = [n for n, (code, _) in enumerate(pairs) if code is None]
        why = tuple(f"{count:,} by {each}" for each, count in bad.most_common(_REASONS))
        if not good:
            raise NotInferred("no sample can be decoded", where=draft.topic, found="; ".join(why))
        rows = [told["row"][n] for n in good if told["row"][n] is not None]
        keys = [messages[n].key() for n in good if told["row"][n] is not None]
        apart = draft.each or "envelope" in draft.source
        return Tried(
            draft,
            taken=len(good),
            samples=len(good) + sum(bad.values()),
            reasons=why,
            keys=() if apart else tuple(candidates(rows, [*map(_bytes, keys)])),
            ordered=all(row[each.name] is not None for row in rows for each in draft.order),
        )

    def _draft(self, topic: str, messages: Sequence[Message], append: bool) -> Draft:
        values = [_bytes(each.value()) or b"" for each in messages]
        numbers = numbers_in_headers(messages)
        if numbers:
            return self._by_schema(topic, numbers, messages, "header", append)
        found = recognize(values)
        if isinstance(found, str):
            raise NotInferred(found, where=topic)
        if found.kind is Kind.FRAMED:
            return self._by_schema(topic, found.numbers, messages, "confluent", append)
        return draft_by_values(topic, found, () if append else self._json_keys(topic))

    def _by_schema(
        self,
        topic: str,
        numbers: Sequence[int],
        messages: Sequence[Message],
        framing: str,
        append: bool,
    ) -> Draft:
        schema = self._schemas.of(topic, numbers)
        values = [_bytes(each.value()) or b"" for each in messages]
        keys = self._schemas.key_names(messages[0]) if not append else ("", ())
        if not keys[1] and not append:
            keys = "json", self._json_keys(topic)
        one = next((each for each in reversed(values) if framed(each)), b"")
        return draft_by_schema(topic, schema, one, framing, keys)

    def _json_keys(self, topic: str) -> tuple[str, ...]:
        """The fields that all record keys have, which are JSON objects; else none."""
        found = {key_names(_bytes(each.key())) for each in self._samples[topic]}
        return found.pop() if len(found) == 1 else ()


def _is_bad(code: str | None) -> bool:
    return code not in (None, SKIPPED)


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
