"""The project's own bundle, read from its files as they are, without the CLI."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
TARGETS = ("dev", "staging", "prod")
SINGULAR = {
    "alerts": "alert",
    "dashboards": "dashboard",
    "jobs": "job",
    "schemas": "schema",
    "secret_scopes": "secret_scope",
    "volumes": "volume",
}
REFERENCE = re.compile(r"\$\{([\w.]+)\}")


@dataclass(frozen=True)
class ResourceFile:
    """A file below resources/ and what it holds: ``resources: {kind: {key: body}}``."""

    path: Path
    content: dict[str, Any]

    @property
    def kind(self) -> str:
        return str(next(iter(self.content["resources"])))

    @property
    def key(self) -> str:
        return str(next(iter(self.content["resources"][self.kind])))

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = self.content["resources"][self.kind][self.key]
        return body

    def __str__(self) -> str:
        return self.path.name


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return content


def root_file() -> dict[str, Any]:
    return read(ROOT / "databricks.yml")


def resource_files() -> list[ResourceFile]:
    paths = sorted((ROOT / "resources").glob("*.yml"))
    return [ResourceFile(path, read(path)) for path in paths]


def jobs() -> list[ResourceFile]:
    return [each for each in resource_files() if each.kind == "jobs"]


KINDS = Counter(each.kind.replace("secret_scopes", "scopes") for each in resource_files())
"""How many of each kind there are, in the words of the workspace."""


def texts(value: object) -> Iterator[str]:
    """Every text in a value, keys too, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (*texts(key), *texts(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def references(value: object) -> set[str]:
    """What stands in ``${…}`` anywhere in a value."""
    return {found for text in texts(value) for found in REFERENCE.findall(text)}
