"""A world whose tables lie in an object store, what its network does meanwhile, and a cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from rivermouth.local.s3 import BUCKET, LocalS3
from rivermouth.local.standalone import LocalCluster
from tests.cluster.lake import RETIRES, overcommitted, settings_on
from tests.stores.lake import storage_of
from tests.stores.proxy import Proxy, Trouble, between

PREFIX = "wh"


class Beyond(Enum):
    """What of a world is beyond one machine."""

    NOTHING = "nothing"
    STORE = "store"
    CLUSTER = "cluster"


GAVE_UP = frozenset({"RM403", "RM501", "RM503", "RM504", "RM505", "RM801", "RM802", "RM803"})
"""Codes by which a driver may end whose store answers badly, or beside which another one works."""


@dataclass(frozen=True)
class StoredWorld:
    """The store behind a world, and what is between."""

    server: LocalS3
    proxy: Proxy
    cluster: LocalCluster | None
    """Where tasks run; None: in the JVM of each driver."""

    @property
    def folder(self) -> Path:
        """Where the store keeps the objects of the warehouse, as files."""
        return self.server.objects / BUCKET / PREFIX

    @property
    def settings(self) -> dict[str, object]:
        """What a configuration says of it."""
        storage = storage_of(self.server, self.proxy.endpoint)
        where: dict[str, object] = {
            "warehouse": f"{self.server.address}/{PREFIX}",
            "storage": storage,
        }
        if self.cluster is not None:
            where["spark"] = settings_on(self.cluster, **RETIRES)
        return where

    def trouble(self, dice: random.Random) -> Trouble:
        """Some requests meet a fault; commits more often than others."""
        rate = dice.choice((0.0, 0.01, 0.02, 0.05))
        return Trouble(seed=str(dice.random()), rate=rate, commits=0.15 if rate else 0.0)


@contextmanager
def stored_world(folder: Path, beyond: Beyond) -> Iterator[StoredWorld | None]:
    """A store that runs until the block ends, and a cluster if it is to be; None: neither."""
    if beyond is Beyond.NOTHING:
        yield None
        return
    with LocalS3(folder) as server, between(server.port) as proxy, ExitStack() as stack:
        cluster = None
        if beyond is Beyond.CLUSTER:
            cluster = stack.enter_context(overcommitted())
        yield StoredWorld(server, proxy, cluster)
