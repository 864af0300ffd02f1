"""When somebody is told that a pipeline needs them, and by which ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field

from rivermouth.config.names import Catalog
from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.config.secret import Secret
from rivermouth.config.settings import Model, Written
from rivermouth.config.value_types import Flag
from rivermouth.config.values import one_server

STATES = ("blocked", "stalled", "stopped", "slow", "unknown")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SHARE = re.compile(r"quarantine\s*>\s*(\d{1,2}(?:\.\d{1,4})?)\s*%", re.ASCII)
_TIME = re.compile(r"(lag\s*>|retention\s*<)\s*(\d{1,6})(s|m|h|d)", re.ASCII)
_FORM = f"write {', '.join(STATES)}, quarantine > 1%, retention < 6h or lag > 10m"


@dataclass(frozen=True)
class Condition:
    """``text`` as it is written. ``of`` is a state in small letters, or ``quarantine`` (``limit``
    is a share), ``retention`` or ``lag`` (seconds).
    """

    text: str
    of: str
    limit: float = 0.0

    def __str__(self) -> str:
        return self.text


def read_conditions(value: object) -> tuple[Condition, ...]:
    """The conditions of ``alerts.on``. Raises ``Refused`` with all faults."""
    if not isinstance(value, list | tuple) or not value:
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be a list, not {value}", fix=_FORM))
    found, faults = list[Condition](), list[Fault]()
    for index, each in enumerate(value):
        condition = _condition(each) if isinstance(each, str) else each
        if not isinstance(condition, Condition):
            condition = None
        if condition is None:
            message = "{path} is no condition: {value}"
            faults.append(Fault(Kind.BAD_VALUE, message, fix=_FORM, path=(index,)))
        elif condition in found:
            faults.append(Fault(Kind.REPEATED, "{path} repeats {value}", path=(index,)))
        else:
            found.append(condition)
    if faults:
        raise Refused(*faults)
    return tuple(found)


def _condition(text: str) -> Condition | None:
    plain = " ".join(text.split())
    if plain in STATES:
        return Condition(plain, plain)
    if share := _SHARE.fullmatch(plain):
        return Condition(plain, "quarantine", float(share[1]) / 100)
    if time := _TIME.fullmatch(plain):
        return Condition(plain, time[1].rstrip(" <>"), float(int(time[2]) * _UNITS[time[3]]))
    return None


def _hidden(value: object) -> Secret:
    if isinstance(value, Secret):
        return value
    if isinstance(value, str) and value:
        return Secret(value)
    raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be text"))


def _address(value: object) -> Secret:
    found = _hidden(value)
    if not found.names and not re.match(r"https?://[^/\s]", found.reveal()):
        raise Refused(Fault(Kind.BAD_VALUE, "{path} must be an address that begins with https://"))
    return found


def _receivers(value: object) -> tuple[str, ...]:
    several = value if isinstance(value, list | tuple) else ()
    if several and all(isinstance(each, str) and "@" in each for each in several):
        return tuple(map(str, several))
    raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be a list of addresses, not {value}"))


_TEXT = {"type": "string"}
Hidden = Annotated[Secret, BeforeValidator(_hidden), Written(lambda: {**_TEXT}, "text")]
Url = Annotated[Secret, BeforeValidator(_address), Written(lambda: {**_TEXT}, "address")]


class Email(Model):
    """A server that takes messages, and who gets them."""

    to: Annotated[
        tuple[str, ...],
        BeforeValidator(_receivers),
        Written(lambda: {"type": "array", "items": _TEXT, "minItems": 1}, "list"),
    ] = Field(description="Who gets the messages.")
    sender: Annotated[str, Written(lambda: {**_TEXT}, "text")] = Field(
        validation_alias="from", description="The address that they come from."
    )
    smtp: Annotated[str, BeforeValidator(one_server), Written(lambda: {**_TEXT}, "host:port")] = (
        Field(description="The server, as `mail.example.org:587`.")
    )
    tls: Flag = Field(default=True, description="Whether the connection is encrypted: STARTTLS.")
    user: Annotated[str, Written(lambda: {**_TEXT}, "text")] = Field(
        default="", description="The name to log in with."
    )
    password: Hidden | None = Field(default=None, description="Its password.")


class Alerts(Model):
    """Where messages go when a pipeline needs somebody."""

    on: Annotated[
        tuple[Condition, ...],
        BeforeValidator(read_conditions),
        Written(lambda: {"type": "array", "items": _TEXT, "minItems": 1}, "list"),
    ] = Field(
        default=(Condition("blocked", "blocked"), Condition("stalled", "stalled")),
        description="When: `blocked`, `stalled`, `stopped`, `slow`, `unknown`, `quarantine > 1%`,"
        " `retention < 6h`, `lag > 10m`.",
    )
    webhook: Url | None = Field(default=None, description="An address to which JSON is posted.")
    slack: Url | None = Field(default=None, description="An incoming webhook of Slack.")
    email: Email | None = Field(default=None, description="Messages by SMTP.")


def alerts_faults(warehouse: object, alerts: Alerts | None) -> Iterator[Fault]:
    """What stands against the section as a whole."""
    if alerts is None:
        return
    if isinstance(warehouse, Catalog):
        message = "{path} goes with tables as files: a run of the command line sends them"
        fix = "on Databricks use the notifications of the job, see docs/databricks.md"
        yield Fault(Kind.NOT_YOURS, message, path=("alerts",), fix=fix, at_key=True)
    elif not (alerts.webhook or alerts.slack or alerts.email):
        message = "{path} names nobody to tell"
        fix = "write webhook, slack or email"
        yield Fault(Kind.MISSING_KEY, message, path=("alerts",), fix=fix, at_key=True)
