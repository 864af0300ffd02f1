"""The small values of a configuration: choices, durations, topics, folders and servers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TypeVar

from rivermouth.config.bucket import Bucket, read_bucket
from rivermouth.config.problems import Fault, Kind, Refused, checked, closest, repeated


class OnDataLoss(Enum):
    """What a run does if Kafka has deleted records that were not read."""

    HALT = "halt"
    RECORD = "record"
    """Write the range into the ledger as lost, and continue after it."""


class OnEmpty(Enum):
    """What becomes of a record that shares no field with the columns."""

    QUARANTINE = "quarantine"
    NULL = "null"
    """A row of nulls."""


class OnDelete(Enum):
    """What an upsert does with an event that deletes a row."""

    DELETE = "delete"
    ROW = "row"
    """The row stays, with what is told of it."""


class Tombstones(Enum):
    """What an append does with a record that has no value."""

    SKIP = "skip"
    """It makes no row, and is counted apart."""
    QUARANTINE = "quarantine"
    ROW = "row"
    """A row of nulls."""


class OnMissingTime(Enum):
    """What a start at a time does with a partition that has no record of that time or later."""

    ERROR = "error"
    LATEST = "latest"
    """Start at its end, as Spark's ``startingOffsetsByTimestampStrategy`` does."""


class Commit(Enum):
    """Who makes the commits of a table to which rows are added, and of its quarantine."""

    AUTO = "auto"
    """The driver by itself, where the table asks for nothing that only Spark's writer knows."""
    SPARK = "spark"


class OnSchemaChange(Enum):
    """What happens where ``schema`` has got columns that the table does not have."""

    APPLY = "apply"
    HALT = "halt"


Choice = TypeVar("Choice", bound=Enum)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_DAY = 86_400_000
_SERVER = re.compile(r"([A-Za-z_]+://)?(\[[0-9A-Fa-f:.]+\]|[^\s:,\[\]/]+):([0-9]{1,5})")

KAFKA_NOT_YOURS: Mapping[str, str] = {
    "isolation.level": "it is always read_committed",
    "auto.offset.reset": "the start comes from the ledger; see source.start",
    "enable.auto.commit": "the position is in the table, not in a consumer group",
    "key.deserializer": "the source reads bytes; see source.key",
    "value.deserializer": "the source reads bytes; see source.format",
    "key.serializer": "Spark writes bytes; see target.kafka",
    "value.serializer": "Spark writes bytes; see target.kafka",
    "interceptor.classes": "Spark does not allow it",
}
PROPERTIES_NOT_YOURS: Mapping[str, str] = {
    "delta.settransactionretentionduration": "it would let Delta forget what was committed",
    "delta.columnmapping.mode": "rows are counted by the names of the columns in their files",
    "clusteringcolumns": "Delta keeps it itself; see target.cluster_by",
}


def read_choice(kind: type[Choice], value: object) -> Choice:
    """A member of the enum from its value; raises ``Refused``."""
    if isinstance(value, kind):
        return value
    return kind(read_name([str(member.value) for member in kind], value))


def read_name(known: Iterable[str], value: object) -> str:
    """One of the ``known`` names; raises ``Refused``."""
    words = tuple(known)
    if isinstance(value, str) and value in words:
        return value
    suggestion = closest(value, words) if isinstance(value, str) else ""
    message = f"{{path}} must be {' or '.join(words)}, not {{value}}"
    problem = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
    raise Refused(Fault(problem, message, suggestion=suggestion))


def read_names(
    known: Sequence[str], value: object, always: Collection[str] = ()
) -> tuple[str, ...]:
    """Some of the ``known`` names, each once; raises ``Refused``.

    Those in ``always`` hold without being written.
    """
    if not isinstance(value, list | tuple):
        message = "{path} must be a list of names, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=f"it may have: {', '.join(known)}"))
    faults: list[Fault] = []
    for index, each in enumerate(value):
        if each in always:
            message = "{path} is {value}, which every row has"
            faults.append(Fault(Kind.BAD_VALUE, message, path=(index,), fix="remove it"))
            continue
        try:
            read_name(known, each)
        except Refused as refused:
            faults += (replace(fault, path=(index,)) for fault in refused.faults)
    names = [known[known.index(e)] if e in known else f"{n}" for n, e in enumerate(value)]
    return checked(tuple(names), [*faults, *repeated(names)])


def read_duration(value: object) -> timedelta:
    """``500ms``, ``10s``, ``2m``, ``1h``, at most 24 hours; raises ``Refused``.

    A number without a unit is refused.
    """
    if isinstance(value, timedelta):
        return value
    form = "write a number and ms, s, m or h, for example 10s"
    message = "{path} must be a duration, not {value}"
    if isinstance(value, Mapping):
        fix = "it says how often a batch starts; instead of availableNow use run --once"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=fix))
    if not isinstance(value, str):
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=form))
    match = re.fullmatch(r"([0-9]{1,9})(ms|s|m|h)", value)
    if match is None:
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=form))
    milliseconds = int(match[1]) * _UNITS[match[2]]
    if milliseconds > _DAY:
        raise Refused(Fault(Kind.BAD_VALUE, "{path} is above 24 hours: {value}"))
    return timedelta(milliseconds=milliseconds)


def check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """No name twice; raises ``Refused``."""
    return checked(names, repeated(names))


def read_days(value: object) -> timedelta:
    """``30d``: whole days, at least one; raises ``Refused``."""
    if isinstance(value, timedelta):
        return value
    match = re.fullmatch(r"([1-9][0-9]{0,4})d", value) if isinstance(value, str) else None
    if match is None:
        kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
        message = "{path} must be a number of days, not {value}"
        raise Refused(Fault(kind, message, fix="write at least 1d, for example 400d"))
    return timedelta(days=int(match[1]))


def check_count(value: int) -> int:
    """A number of offsets, from 1 to the greatest 64-bit integer; raises ``Refused``."""
    return _counted(value, 2**63 - 1)


def check_tasks(value: int) -> int:
    """A number of tasks, from 1, that fits into 32 bits, as Spark asks; raises ``Refused``."""
    return _counted(value, 2**31 - 1)


def _counted(value: int, most: int) -> int:
    if value < 1:
        raise Refused(Fault(Kind.BAD_VALUE, "{path} must be at least 1, not {value}"))
    if value > most:
        raise Refused(Fault(Kind.BAD_VALUE, f"{{path}} must be at most {most}, not {{value}}"))
    return value


def read_version(value: object) -> int:
    """The only version of the format; raises ``Refused``."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if number and value == 1:
        return 1
    kind = Kind.BAD_VALUE if number else Kind.WRONG_TYPE
    raise Refused(Fault(kind, "{path} must be 1, not {value}", fix="write version: 1"))


def read_true(value: object) -> bool:
    """The only value of Spark's ``failOnDataLoss`` here, also as text; raises ``Refused``."""
    text = str(value).lower()
    if text == "false":
        message = "{path} cannot be false: a loss is never silent"
        raise Refused(Fault(Kind.NOT_YOURS, message, fix="write on_data_loss: record"))
    if text != "true":
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be true, not {value}", fix="remove it"))
    return True


def read_flag(value: object) -> bool:
    """``true`` or ``false``, also as text; raises ``Refused``."""
    text = str(value).lower()
    if text not in ("true", "false"):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be true or false, not {value}"))
    return text == "true"


def shown_duration(value: timedelta) -> str:
    """A duration as the file writes it, in the longest unit that fits: ``10s``."""
    milliseconds = value // timedelta(milliseconds=1)
    unit = next(unit for unit in reversed(_UNITS) if milliseconds % _UNITS[unit] == 0)
    return f"{milliseconds // _UNITS[unit]}{unit}"


def read_warehouse(value: object, folder: Path | None) -> Path | Bucket:
    """A bucket, or an absolute folder, by a path that all libraries read in the same way.

    A relative text is resolved against ``folder``. Raises ``Refused``.
    """
    if isinstance(value, Bucket) or (isinstance(value, Path) and value.is_absolute()):
        return value
    if not isinstance(value, str):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be a folder, not {value}"))
    message = "{path} must be a folder, not {value}"
    if not value.strip() or "\0" in value:
        raise Refused(Fault(Kind.BAD_VALUE, message))
    if (bucket := read_bucket(value)) is not None:
        return bucket
    if value.startswith("~"):
        raise Refused(Fault(Kind.BAD_VALUE, message, fix="write ${env:HOME} instead of ~"))
    path = Path(value) if folder is None else folder / value
    if not path.is_absolute():
        raise Refused(Fault(Kind.BAD_VALUE, "{path} must be an absolute folder, not {value}"))
    whole = os.path.normpath(path)
    # delta-rs reads these as something else, each library differently (tried with 1.6).
    strange = sorted({each for each in whole if each in "%[]\\|^" or not each.isprintable()})
    if strange:
        message = f"{{path}} has {' '.join(map(repr, strange))} in its whole path"
        fix = "choose a folder without these characters"
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=fix))
    return Path(whole)


def check_servers(value: str) -> Iterable[Fault]:
    """The faults of a ``host:port,host:port`` list."""
    for server in value.split(","):
        match = _SERVER.fullmatch(server.strip())
        if match is None or not 0 < int(match[3]) < 65536:
            message = "{path} must be host:port, or several with commas, not {value}"
            yield Fault(Kind.BAD_VALUE, message, path=("bootstrap.servers",))
            return


def one_server(value: object) -> str:
    """``host:port``; raises ``Refused``."""
    match = _SERVER.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[1] or not 0 < int(match[3]) < 65536:
        raise Refused(Fault(Kind.BAD_VALUE, "{path} must be host:port, not {value}"))
    return match[0]


def not_yours(names: Iterable[str], table: Mapping[str, str], prefix: str = "") -> Iterable[Fault]:
    """A fault for each option that a user may not set.

    ``table`` has their names in lower case, each with its reason; a name with a dot at its end
    stands for all that begin so.
    """
    for name in names:
        wanted = name.removeprefix(prefix).lower()
        reasons = (why for each, why in table.items() if _names(each, wanted))
        reason = next(reasons, None)
        if reason is not None:
            message = f"{{path}} cannot be set: {reason}"
            yield Fault(Kind.NOT_YOURS, message, path=(name,), fix="remove it", at_key=True)


def _names(entry: str, wanted: str) -> bool:
    return wanted == entry or (entry.endswith(".") and wanted.startswith(entry))


def check_property_names(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties without any that breaks the ledger; raises ``Refused``."""
    return checked(properties, not_yours(properties, PROPERTIES_NOT_YOURS))
