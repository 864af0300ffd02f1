"""Text that is never shown: which options hold it, and how the file refers to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

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
    r"|keystore\.key|key\.pem|api[._-]?key|user\.info",
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
    remedy = "Give it one, for example rivermouth.databricks.secrets.secrets_here()"
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
