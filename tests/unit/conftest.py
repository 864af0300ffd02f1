"""Where the tables of ``tests.doubles`` lie: what holds of a folder has to hold of a catalog."""

from __future__ import annotations

import pytest

from tests.doubles import World


@pytest.fixture(params=["folder", "catalog"])
def either_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test twice: with a log that tells its ``txn``, and with one that does not."""
    monkeypatch.setattr(World, "catalog", request.param == "catalog")
