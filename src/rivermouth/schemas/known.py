"""The schemas that a run knows by their numbers. What a registry said of a number stays true."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from itertools import product
from pathlib import Path

from rivermouth.config import Config, Pipeline
from rivermouth.config.secret import Secrets
from rivermouth.errors import SourceError
from rivermouth.schemas.registry import Registry
from rivermouth.schemas.whole import text_of

_LAG_S = 1.0
"""So long another node of a registry may take to know of a new schema."""


def with_schemas(pipeline: Pipeline, known: KnownSchemas | None) -> Pipeline:
    """The pipeline with the schemas that its records name, as far as they are known.

    Raises SourceError where the registry is away and a batch has met others.
    """
    return known.into(pipeline) if pipeline.named_schemas and known is not None else pipeline


def schemas_of(config: Config, secrets: Secrets, folder: Path) -> KnownSchemas | None:
    """Those of the registry of a configuration, see ``KnownSchemas``; None where it names none."""
    registry = config.schema_registry
    return None if registry is None else KnownSchemas(registry.revealed(secrets), folder)


class KnownSchemas:
    """Schemas of one registry, for all pipelines of a run; for several threads.

    ``options`` are those of its client, with secrets revealed. Below ``folder`` they are kept
    beyond the run, so that one that starts while the registry is away goes on. It can be pickled.
    """

    def __init__(self, options: Mapping[str, str], folder: Path) -> None:
        name = hashlib.sha256(options["url"].encode()).hexdigest()[:16]
        self._options, self._folder = options, folder / "schemas" / name
        self._texts: dict[int, str | None] = {}
        self._wanted: set[int] = set()
        for each in self._folder.glob("*.json"):
            with suppress(OSError, ValueError):
                self._texts[int(each.stem)] = json.loads(each.read_text(encoding="utf-8"))["text"]
        self._looks_ahead = not self._texts

    def want(self, numbers: Iterable[int]) -> None:
        """Ask for these before the next batch: records name them."""
        self._wanted.update(numbers)

    def into(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the schemas of its records: those that are wanted, and, where nothing
        was known of the registry, those of the subjects of its topics. A run that knows its schemas
        asks nothing. Raises SourceError where one is wanted and the registry is away.
        """
        with ExitStack() as stack:
            registry = cache(lambda: stack.enter_context(Registry(self._options)))
            wanted = sorted(self._wanted)
            for pause_s in (0.0, _LAG_S):
                missing = [each for each in wanted if self._texts.get(each) is None]
                time.sleep(pause_s if missing else 0)
                for number in missing:
                    self._learn(number, registry)
            self._wanted.difference_update(wanted)
            topics = pipeline.source.topics if self._looks_ahead else ()
            with suppress(SourceError):  # these are only likely to be met
                for topic, what in product(topics, pipeline.named_schemas):
                    for number in registry().numbers(f"{topic}-{what}"):
                        self._learn(number, registry)
        return pipeline.model_copy(update={"schemas": dict(self._texts)})

    def __call__(self, number: int) -> str | None:
        """The text for decoders; None: the registry has no such schema. Raises SourceError."""
        with ExitStack() as stack:
            self._learn(number, lambda: stack.enter_context(Registry(self._options)))
        return self._texts[number]

    def _learn(self, number: int, registry: Callable[[], Registry]) -> None:
        if self._texts.get(number) is not None:
            return
        schema = registry().schema(number)
        self._texts[number] = None if schema is None else text_of(schema)
        if schema is not None:
            self._keep(number)

    def _keep(self, number: int) -> None:
        with suppress(OSError):  # it is asked for again
            self._folder.mkdir(parents=True, exist_ok=True)
            into = self._folder / f"{number}.json"
            part = into.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps({"text": self._texts[number]}), encoding="utf-8")
            part.replace(into)
