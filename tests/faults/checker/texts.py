"""Secrets must stand in no text: logs, ledgers, checkpoints, reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.faults.checker.verdict import Fault, Finding

_CHUNK = 1 << 20


class Texts:
    """Searches files for secrets; what was searched is not searched again."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self.findings: list[Finding] = []
        self._secrets = [each.encode() for each in secrets]
        self._overlap = max((len(each) for each in self._secrets), default=1) - 1
        self._searched: dict[Path, int] = {}

    def search(self, places: Iterable[Path]) -> None:
        """Search files, and all files in folders, where they have grown."""
        if not self._secrets:
            return
        for file in sorted({each for place in places for each in _files(place)}):
            try:
                self._search(file)
            except FileNotFoundError:
                continue  # cleaned up meanwhile

    def _search(self, file: Path) -> None:
        size, known = file.stat().st_size, self._searched.get(file, 0)
        if size == known:
            return
        self._searched[file] = size
        with file.open("rb") as opened:
            opened.seek(max(0, known - self._overlap) if size > known else 0)
            tail = b""
            while chunk := opened.read(_CHUNK):
                for number, secret in enumerate(self._secrets, 1):
                    if secret in tail + chunk:
                        what = f"secret {number} stands in it"
                        self.findings.append(Finding(Fault.SECRET, str(file), what))
                tail = (tail + chunk)[-self._overlap :] if self._overlap else b""


def _files(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from (each for each in place.rglob("*") if each.is_file())
    elif place.exists():
        yield place
