"""Files of a login that are replaced: noticed once all of them have come to rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rivermouth.kafka.login import LoginFiles

pytestmark = pytest.mark.unit


class Clock:
    """Half a second passes with each look at it."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += 0.5
        return self._now_s


def files(tmp_path: Path) -> tuple[Path, Path, LoginFiles]:
    certificate, key = tmp_path / "me.crt", tmp_path / "me.key"
    for each in (certificate, key):
        each.write_text("old")
    options = {
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
        "ssl.ca.location": "probe",
    }
    return certificate, key, LoginFiles(options, Clock())


def replace(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, file)


def test_files_that_nobody_touches_are_not_replaced(tmp_path: Path) -> None:
    *_, found = files(tmp_path)
    assert [found.replaced() for _ in range(3)] == [False] * 3


def test_a_replacement_counts_a_second_after_the_last_file_has_come(tmp_path: Path) -> None:
    certificate, key, found = files(tmp_path)
    replace(certificate, "new")
    assert not found.replaced()
    replace(key, "new")
    assert [found.replaced() for _ in range(2)] == [False, True]
    replace(key, "newer")
    assert found.replaced(), "it stays true"


def test_a_file_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    certificate, _, found = files(tmp_path)
    certificate.unlink()
    assert [found.replaced() for _ in range(4)] == [False] * 4
    certificate.write_text("new")
    assert [found.replaced() for _ in range(2)] == [False, True]


def test_a_login_without_files_is_never_replaced() -> None:
    found = LoginFiles({"sasl.username": "me", "ssl.ca.location": "probe"}, Clock())
    assert [found.replaced() for _ in range(4)] == [False] * 4
