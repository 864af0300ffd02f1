"""The properties of Delta tables that the driver understands when it commits by itself.

Whatever else a table says is a reason to let Spark write it: Delta's own writer knows what that
means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping


def understood(name: str, value: str) -> bool:
    """Whether the driver may commit to a table with this property of Delta."""
    takes = _PROPERTIES.get(name.lower())
    return takes is not None and takes(value)


def _any(value: str) -> bool:
    del value
    return True


def _is(*values: str) -> Callable[[str], bool]:
    return lambda value: value.strip().lower() in values


def _number(least: int) -> Callable[[str], bool]:
    return lambda value: value.removeprefix("-").isdecimal() and int(value) >= least


def _is_interval(value: str) -> bool:
    """Spelt so that delta-rs reads it as Spark does: for all else it silently takes its default."""
    return _INTERVAL.fullmatch(value) is not None


_INTERVAL = re.compile(r"interval [0-9]{1,6} (second|minute|hour|day|week)s?")
_OFF = _is("false")
_BOTH = _is("true", "false")
_PROPERTIES: Mapping[str, Callable[[str], bool]] = {
    "delta.appendonly": _BOTH,
    "delta.autooptimize.autocompact": _OFF,
    "delta.autooptimize.optimizewrite": _OFF,
    "delta.checkpoint.writestatsasjson": _is("true"),
    "delta.checkpointinterval": _number(1),
    "delta.checkpointpolicy": _is("classic"),
    "delta.columnmapping.mode": _is("none"),
    "delta.dataskippingnumindexedcols": _number(-1),
    "delta.deletedfileretentionduration": _is_interval,
    "delta.enablechangedatafeed": _BOTH,
    "delta.enabledeletionvectors": _BOTH,
    "delta.enableexpiredlogcleanup": _BOTH,
    "delta.enableincommittimestamps": _OFF,
    "delta.enablerowtracking": _OFF,
    "delta.enabletypewidening": _OFF,
    "delta.isolationlevel": _is("serializable"),
    "delta.logretentionduration": _is_interval,
    "delta.randomizefileprefixes": _OFF,
    "delta.targetfilesize": _any,
}
"""The properties of Delta that are understood, in lower case, and which of their values."""


def not_replacing(properties: Mapping[str, str]) -> Iterator[str]:
    """The properties with which rows of a table cannot be replaced."""
    asked = {"delta.enabledeletionvectors": "true"}
    asked |= {"delta.enablechangedatafeed": "false"}
    for name, value in properties.items():
        if asked.get(name.lower(), value.lower()) != value.lower():
            yield name
