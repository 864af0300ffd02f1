"""Why a record is bad."""

from __future__ import annotations

_MOST = 200
_SHOWN = 40


class Bad(Exception):
    """The record does not follow the specification. ``reason`` is for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._reason = reason
        self._path: list[str] = []

    def within(self, place: str) -> Bad:
        """The same, found in the field ``.name`` or the element ``[3]``."""
        self._path.append(place)
        return self

    @property
    def reason(self) -> str:
        path = "".join(reversed(self._path)).removeprefix(".")
        if len(path) > _MOST // 2:
            path = f"{path[: _MOST // 2 - 1]}…"
        text = f"{path}: {self._reason}" if path else self._reason
        return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def shown(value: object) -> str:
    """What a record has, for a message: short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, tuple):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = str(value)
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return f'the text "{text}"' if type(value) is str else f"the number {text}"
