"""The files that a login names: certificates and keys that somebody may replace in mid-run.

Both clients read them when they are made, and keep what they read. So after a replacement a
client must be made anew before what it holds expires.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rivermouth.config.jaas import read_jaas
from rivermouth.registry.logins import SYSTEM

_NAMED = re.compile(r"(ssl\.(ca|certificate|key|keystore|truststore)|https\.ca)\.location")

SETTLED_S = 1.0
"""So long must all files stay as they are: key and certificate are replaced one after the other."""

Stamps = tuple[tuple[int, int, int] | None, ...]


class LoginFiles:
    """Whether a file that the options name was replaced since this was made."""

    def __init__(
        self, options: Mapping[str, str], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        every = {**read_jaas(options.get("sasl.jaas.config", "")), **options}
        named = {text for name, text in every.items() if _NAMED.fullmatch(name)}
        self._paths = sorted(Path(text) for text in named - {SYSTEM})
        self._first = self._last = self._stamps()
        self._now_s = now_s
        self._since_s = now_s()
        self._replaced = False

    def replaced(self) -> bool:
        """True once a file is another one than at first, and all have settled. It stays true."""
        before, self._last = self._last, self._stamps()
        if before != self._last:
            self._since_s = self._now_s()
        pairs = zip(self._first, self._last, strict=True)
        gone = any(first is not None and last is None for first, last in pairs)
        settled = self._now_s() - self._since_s >= SETTLED_S and not gone
        self._replaced = self._replaced or (settled and self._last != self._first)
        return self._replaced

    def _stamps(self) -> Stamps:
        return tuple(_stamp(path) for path in self._paths)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
