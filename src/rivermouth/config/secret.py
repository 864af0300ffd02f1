"""Text that is never shown, and the names under which such text is expected."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

MASK = "********"

_SENSITIVE = re.compile(
    r"passw(or)?d|passphrase|secret|jaas|token|credential|private[._-]?key"
    r"|keystore\.key|key\.pem|api[._-]?key|user\.info",
    re.IGNORECASE,
)


def sensitive(name: str) -> bool:
    """Whether the value of an option of this name must not be shown."""
    return _SENSITIVE.search(name) is not None


class Secret:
    """A secret text. Printing, formatting and dumping show ``********``.

    ``reveal`` is the only way to the text, for the moment of use. A secret cannot be pickled:
    what is pickled is what Spark would write into a checkpoint or send to executors.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

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
