"""The files that a login names: certificates and keys that somebody may replace in mid-run.

Both clients read them when they are made, and keep what they read. So after a replacement a
client must be made anew before what it holds expires.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rivermouth.config.jaas import read_jaas
from rivermouth.registry.logins import SYSTEM

_NAMED = re.compile(r"(ssl\.(ca|certificate|key|keystore|truststore)|https\.ca)\.location")

Stamps = tuple[tuple[int, int, int] | None, ...]


class LoginFiles:
    """Whether a file that the options name was replaced since this was made."""

    def __init__(self, options: Mapping[str, str]) -> None:
        every = {**read_jaas(options.get("sasl.jaas.config", "")), **options}
        named = {text for name, text in every.items() if _NAMED.fullmatch(name)}
        self._paths = sorted(Path(text) for text in named - {SYSTEM})
        self._first = self._last = self._stamps()
        self._replaced = False

    def replaced(self) -> bool:
        """True once a file is another one than at first, and all are as at the last look.

        Key and certificate are replaced one after the other; two equal looks tell the end of it.
        It stays true.
        """
        before, self._last = self._last, self._stamps()
        pairs = zip(self._first, self._last, strict=True)
        gone = any(first is not None and last is None for first, last in pairs)
        at_rest = before == self._last and not gone
        self._replaced = self._replaced or (at_rest and self._last != self._first)
        return self._replaced

    def _stamps(self) -> Stamps:
        return tuple(_stamp(path) for path in self._paths)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
