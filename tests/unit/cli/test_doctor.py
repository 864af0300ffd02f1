"""``doctor``: what it looks at, with a configuration and without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.operate.doctor import Check
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("named", "sets"), [(True, ["spark"]), (False, ["spark", "broker"])])
def test_the_jars_of_our_broker_are_only_for_the_demo(
    rivermouth: Rivermouth,
    lake_yml: Path,
    monkeypatch: pytest.MonkeyPatch,
    named: bool,
    sets: list[str],
) -> None:
    asked: list[str] = []

    def none(*_: object) -> Iterator[Check]:
        yield from ()

    monkeypatch.setattr("rivermouth.operate.doctor.jars", lambda name, **_: asked.append(name) or ())
    monkeypatch.setattr("rivermouth.operate.doctor.verify_jars", lambda name: None)
    monkeypatch.setattr("rivermouth.operate.doctor.check_config", none)

    ended = rivermouth("doctor", *([lake_yml] if named else []))

    assert asked == sets
    assert ended.out.splitlines()[-1].startswith("OK. Next: rivermouth ")
