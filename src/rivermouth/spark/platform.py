"""What a place to run allows, as values: a laptop, and three kinds of Databricks compute.

Databricks' serverless compute and its clusters in standard access mode are reached through
Spark Connect: no JVM in this process, and a function given to ``foreachBatch`` would run in
another one. So there the driver plans the offset ranges itself and reads each as a batch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from rivermouth.errors import ConfigError


@dataclass(frozen=True)
class Platform:
    """What may be done. ``name`` is how it is called in ``RIVERMOUTH_PLATFORM``."""

    name: str
    jvm: bool
    """Whether Spark's JVM is at hand: ``foreachBatch`` in this process, session confs,
    ``persist``, ``localCheckpoint``. Without it none of these is used."""
    continuous: bool
    """Whether a run may go on until it is stopped."""
    databricks: bool
    """Whether Kafka's Java classes carry the prefix that Databricks gives them."""


LOCAL = Platform("local", jvm=True, continuous=True, databricks=False)
CLASSIC = Platform("classic", jvm=True, continuous=True, databricks=True)
STANDARD = Platform("standard", jvm=False, continuous=True, databricks=True)
SERVERLESS = Platform("serverless", jvm=False, continuous=False, databricks=True)
CONNECT = Platform("connect", jvm=False, continuous=True, databricks=False)

_NAMED = {each.name: each for each in (LOCAL, CLASSIC, STANDARD, SERVERLESS, CONNECT)}


def platform_of(environ: Mapping[str, str] = os.environ, *, connect: bool = False) -> Platform:
    """The platform that this process runs on; ``connect``: its session is one of Spark Connect.

    ``RIVERMOUTH_PLATFORM`` decides where it is set. Raises ConfigError for an unknown name.
    """
    named = environ.get("RIVERMOUTH_PLATFORM")
    if named:
        if named not in _NAMED:
            known = ", ".join(_NAMED)
            raise ConfigError((f"RIVERMOUTH_PLATFORM is {named!r}, expected one of: {known}",))
        return _NAMED[named]
    if not environ.get("DATABRICKS_RUNTIME_VERSION"):
        return CONNECT if connect else LOCAL
    if environ.get("IS_SERVERLESS", "").lower() == "true":
        return SERVERLESS
    return STANDARD if connect else CLASSIC
