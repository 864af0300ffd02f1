"""A shelf: resources of one kind by their id, kept as plain objects."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

from tests.bundle.workspace.messages import Resource, missing


class Shelf:
    """What is taken from it is a copy, so that only ``put`` changes what it holds."""

    def __init__(self, kind: str, numbers_from: int = 1) -> None:
        self.kind = kind
        self._held: dict[str, Resource] = {}
        self._numbers = itertools.count(numbers_from)

    def number(self) -> int:
        """An id that was never given before."""
        return next(self._numbers)

    def put(self, key: str, resource: Resource) -> None:
        self._held[key] = copy.deepcopy(resource)

    def get(self, key: str) -> Resource:
        """Raises Refused when there is none."""
        if key not in self._held:
            raise missing(f"{self.kind} {key}")
        return copy.deepcopy(self._held[key])

    def remove(self, key: str) -> None:
        self.get(key)
        del self._held[key]

    def all(self) -> list[Resource]:
        return [copy.deepcopy(resource) for resource in self._held.values()]

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)
