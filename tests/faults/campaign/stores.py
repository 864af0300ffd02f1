"""A world whose tables lie in an object store, and what its network does meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rivermouth.local.s3 import BUCKET, LocalS3
from tests.stores.lake import storage_of
from tests.stores.proxy import Proxy, Trouble, between

PREFIX = "wh"
GAVE_UP = frozenset({"RM403", "RM501", "RM503", "RM504", "RM505", "RM801", "RM802", "RM803"})
"""Codes by which a driver may end whose store answers badly, or beside which another one works."""


@dataclass(frozen=True)
class StoredWorld:
    """The store behind a world, and what is between."""

    server: LocalS3
    proxy: Proxy

    @property
    def folder(self) -> Path:
        """Where the store keeps the objects of the warehouse, as files."""
        return self.server.directory / "objects" / BUCKET / PREFIX

    @property
    def settings(self) -> dict[str, object]:
        """What a configuration says of it."""
        storage = storage_of(self.server, self.proxy.endpoint)
        return {"warehouse": f"s3://{BUCKET}/{PREFIX}", "storage": storage}

    def trouble(self, dice: random.Random) -> Trouble:
        """Some requests meet a fault; commits more often than others."""
        rate = dice.choice((0.0, 0.01, 0.03, 0.1))
        return Trouble(seed=str(dice.random()), rate=rate, commits=0.3 if rate else 0.0)


@contextmanager
def stored_world(folder: Path) -> Iterator[StoredWorld]:
    """A store that runs until the block ends."""
    with LocalS3(folder) as server, between(server.port) as proxy:
        yield StoredWorld(server, proxy)
