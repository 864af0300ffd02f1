"""Text that is never shown, and references to it: ``${env:NAME}``, ``${secret:scope/key}``.

As in a shell, the default also replaces a variable that is set but empty. It ends at the first
``}``, so it cannot hold a reference. ``$${`` is a literal ``${``. References inside the value of a
variable or of a secret are not followed. The name of a secret may be made with variables:
``${secret:${env:SCOPE}/key}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.errors import SecretUnavailable

MASK = "********"
NAME = r"[A-Za-z0-9_.@-]{1,128}/[A-Za-z0-9_.-]{1,128}"
"""A scope and a key, as Databricks allows them."""

REFERENCE = r"(^|[^$])\$\{secret:"
"""A pattern that finds a reference to a secret in a text."""

Secrets = Callable[[str, str], str]
"""Reads a secret: from scope and key to its text. Raises SecretUnavailable."""

_SENSITIVE = re.compile(
    r"passw(or)?d|passphrase|secret|jaas|token|credential|private[._-]?key"
    r"|keystore\.key|key\.pem|(api|access|account)[._-]?key|user\.info",
    re.IGNORECASE,
)


def sensitive(name: str) -> bool:
    """Whether the value of an option of this name must not be shown."""
    return _SENSITIVE.search(name) is not None


@dataclass(frozen=True, order=True)
class SecretName:
    """The place of a secret: a key in a secret scope of Databricks."""

    scope: str
    key: str

    def __str__(self) -> str:
        return f"{self.scope}/{self.key}"


def unresolved(scope: str, key: str) -> NoReturn:
    """Reads no secret: the default where no reader of secrets was given."""
    remedy = "Give it one, for example rivermouth.databricks.workspace.secrets_here()"
    raise SecretUnavailable(
        "nothing here reads secrets", where=str(SecretName(scope, key)), remedy=remedy
    )


class Secret:
    """A secret text, or a text that is made of pieces and of named secrets.

    Printing, formatting and dumping show ``********``. Only ``reveal`` gives the text, at the
    moment of use. Named secrets are read then, each time, and are not kept. A secret cannot be
    pickled, because Spark writes what is pickled into a checkpoint or sends it to executors.
    """

    __slots__ = ("_parts",)

    def __init__(self, *parts: str | SecretName) -> None:
        self._parts = parts

    @property
    def names(self) -> frozenset[SecretName]:
        """The secrets that it refers to."""
        return frozenset(part for part in self._parts if isinstance(part, SecretName))

    def reveal(self, secrets: Secrets = unresolved) -> str:
        """The text. ``secrets`` reads each name; what it raises is raised here too."""
        return "".join(
            part if isinstance(part, str) else secrets(part.scope, part.key) for part in self._parts
        )

    def __repr__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash((Secret, self._parts))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret cannot be pickled: call reveal() where it is used")

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.is_instance_schema(
            cls, serialization=core_schema.plain_serializer_function_ser_schema(lambda _: MASK)
        )


_REFERENCE = re.compile(
    r"\$\$\{|\$\{env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}"
    r"|\$\{secret:(?P<secret>([A-Za-z0-9_.@/-]|\$\{env:[^{}]*\})+)\}"
    r"|\$\{(?P<kind>[A-Za-z]+:)?"
)
KNOWN = (
    "write ${env:NAME} or ${env:NAME:-default}, under kafka:, schema_registry:, storage: and "
    "alerts: also ${secret:scope/key}, "
    "or $${ for a literal ${"
)


class EnvText(str):
    """Text made with a variable. A field that is not text reads its own type from it."""

    __slots__ = ()


def whole(value: object) -> object:
    """The whole number that a variable of the environment spells; anything else as it is."""
    if isinstance(value, EnvText):
        digits = value.strip().removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 19:
            return int(value)
    return value


def substitute(
    text: str, environ: Mapping[str, str], *, secret: bool, may_refer: bool = False
) -> str | Secret:
    """The text with every variable replaced: an ``EnvText`` if there was one. It is a ``Secret``
    if the text refers to secrets, which only ``may_refer`` allows.

    ``secret`` says that no part of the text may be quoted. Raises ``Refused`` with every missing
    variable and malformed reference. The value of a variable is never in it.
    """
    parts: list[str | SecretName] = []
    faults: list[Fault] = []
    end = 0
    for match in _REFERENCE.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        try:
            parts.append(_replaced(match, environ, secret=secret, may_refer=may_refer))
        except Refused as refused:
            faults += refused.faults
    if faults:
        raise Refused(*faults)
    parts.append(text[end:])
    if any(isinstance(part, SecretName) for part in parts):
        return Secret(*parts)
    whole = "".join(map(str, parts))
    return EnvText(whole) if any(isinstance(part, EnvText) for part in parts) else whole


def _replaced(
    match: re.Match[str], environ: Mapping[str, str], *, secret: bool, may_refer: bool
) -> str | SecretName:
    if match[0] == "$${":
        return "${"
    if match["secret"] is not None:
        if not may_refer:
            fix = "write the option at the top of the file, in its section"
            message = "{path} cannot be a secret: only options of clients can"
            raise Refused(Fault(Kind.BAD_REFERENCE, message, fix=fix))
        name = substitute(match["secret"], environ, secret=secret)
        if not re.fullmatch(NAME, str(name)):
            raise Refused(_malformed(match, secret))
        return SecretName(*str(name).split("/"))
    if match["name"] is None:
        raise Refused(_malformed(match, secret))
    return EnvText(_variable(match["name"], match["default"], environ))


def _variable(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if default is not None:
        if "${" in default:
            fix = "its default ends at the first }; set the variable instead"
            message = f"{{path}} has a reference in the default of {name}"
            raise Refused(Fault(Kind.BAD_REFERENCE, message, fix=fix))
        return value or default[2:]
    if value is None:
        fix = f"set it, or write ${{env:{name}:-default}}"
        message = f"{{path}} needs the environment variable {name}, which is not set"
        raise Refused(Fault(Kind.NO_VARIABLE, message, fix=fix))
    return value


def _malformed(match: re.Match[str], secret: bool) -> Fault:
    kind = match["kind"]
    if match["secret"] is not None or kind == "secret:":
        message = "{path} has a ${secret:…} reference without a valid scope, key or end"
    elif kind is None or secret:
        message = "{path} has a reference of unknown form"
    elif kind == "env:":
        message = "{path} has an ${env:…} reference without a valid name or end"
    else:
        message = '{path} has a reference of unknown kind "${' + kind + '…}"'
    return Fault(Kind.BAD_REFERENCE, message, fix=KNOWN)
