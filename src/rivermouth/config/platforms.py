"""Platforms: which capabilities a place to run has. Pure.

Databricks' serverless compute and its clusters in standard access mode are reached through
Spark Connect: no JVM in this process, and a function given to ``foreachBatch`` would run in
another one. So the driver plans the offset ranges itself there and reads each as a batch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from rivermouth.errors import ConfigError


class Capability(Enum):
    """One thing that a platform may allow. Code asks for what it needs by its name."""

    JVM = "jvm"
    """Spark's JVM belongs to this process. So ``foreachBatch`` runs in it, and Structured Streaming
    may plan the batches; a MERGE carries ``txn`` and ledger entry by session confs; ``persist`` and
    ``localCheckpoint`` exist."""
    ONE_HOST = "one host"
    """Driver and executors are one machine, and Spark runs no task again."""
    FILES = "files"
    """Tasks write files where the driver finds them: in a folder that all of them share, or in an
    object store."""
    CONTINUOUS = "continuous"
    """A run may go on until it is stopped."""
    SHADED_KAFKA = "shaded kafka"
    """The classes of Kafka's Java client carry the prefix that Databricks gives them."""


@dataclass(frozen=True)
class Platform:
    """A place to run. ``name`` is how it is called in ``RIVERMOUTH_PLATFORM``."""

    name: str
    capabilities: frozenset[Capability]

    def has(self, *wanted: Capability) -> bool:
        """Whether it has all of these capabilities."""
        return self.capabilities.issuperset(wanted)

    def with_store(self) -> Platform:
        """The same where the tables are in an object store, which all tasks reach.

        Raises ConfigError where Spark is reached through Connect: nobody has tried that yet.
        """
        if not self.has(Capability.JVM):
            line = f"the platform {self.name} is reached through Spark Connect"
            fix = "use a cluster in dedicated mode, or a catalog"
            raise ConfigError((f"{line}, and does not write an object store yet — {fix}",))
        return Platform(self.name, self.capabilities | {Capability.FILES})


_JVM = frozenset({Capability.JVM, Capability.CONTINUOUS})
_CONTINUOUS = frozenset({Capability.CONTINUOUS})
_SHADED = frozenset({Capability.SHADED_KAFKA})

LOCAL = Platform("local", _JVM | {Capability.ONE_HOST, Capability.FILES})
CLUSTER = Platform("cluster", _JVM | {Capability.FILES})
CLASSIC = Platform("classic", _JVM | _SHADED)
STANDARD = Platform("standard", _CONTINUOUS | _SHADED)
SERVERLESS = Platform("serverless", _SHADED)
CONNECT = Platform("connect", _CONTINUOUS)

PLATFORMS = {each.name: each for each in (LOCAL, CLUSTER, CLASSIC, STANDARD, SERVERLESS, CONNECT)}


def platform_of(
    environ: Mapping[str, str] = os.environ, *, connect: bool = False, one_host: bool = True
) -> Platform:
    """The platform that this process runs on.

    ``connect``: its session is one of Spark Connect; ``one_host``: its executors are in this
    machine. ``RIVERMOUTH_PLATFORM`` decides where it is set. Raises ConfigError for an unknown
    name.
    """
    named = environ.get("RIVERMOUTH_PLATFORM")
    if named:
        if named not in PLATFORMS:
            known = ", ".join(PLATFORMS)
            raise ConfigError((f"RIVERMOUTH_PLATFORM is {named!r}, expected one of: {known}",))
        return PLATFORMS[named]
    if not environ.get("DATABRICKS_RUNTIME_VERSION"):
        return CONNECT if connect else LOCAL if one_host else CLUSTER
    if environ.get("IS_SERVERLESS", "").lower() == "true":
        return SERVERLESS
    return STANDARD if connect else CLASSIC
