"""Text that is never shown: its names, and what the file may say in its place."""

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
"""Who knows secrets: from scope and key to the text. Raises SecretUnavailable."""

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
    """Where a secret is kept: a key in a secret scope of Databricks."""

    scope: str
    key: str

    def __str__(self) -> str:
        return f"{self.scope}/{self.key}"


def unresolved(scope: str, key: str) -> NoReturn:
    """Knows no secret: what stands in where nobody was given who does."""
    remedy = "Give it one, for example rivermouth.databricks.secrets.secrets_here()"
    raise SecretUnavailable(
        "nothing here reads secrets", where=str(SecretName(scope, key)), remedy=remedy
    )


class Secret:
    """A secret text, or one that is put together from pieces of text and named secrets.

    Printing, formatting and dumping show ``********``. ``reveal`` is the only way to the text,
    for the moment of use: what is named is asked for then, each time, and not kept. A secret
    cannot be pickled: what is pickled is what Spark would write into a checkpoint or send to
    executors.
    """

    __slots__ = ("_parts",)

    def __init__(self, *parts: str | SecretName) -> None:
        self._parts = parts

    @property
    def names(self) -> frozenset[SecretName]:
        """The secrets that it refers to."""
        return frozenset(part for part in self._parts if isinstance(part, SecretName))

    def reveal(self, secrets: Secrets = unresolved) -> str:
        """The text. ``secrets`` is asked for each name; what it raises is passed on."""
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
