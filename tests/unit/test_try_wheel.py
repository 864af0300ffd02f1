"""What ``make wheel-demo`` reads from a wheel, and what it refuses of what a run has loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.wheel import build
from tools.try_wheel import Failed, check_loaded, declared

pytestmark = pytest.mark.unit

INSTALLED = {"rivermouth": "0.1.0", "ruamel-yaml": "0.19.1", "pandas": "2.3.3"}


def test_it_asks_for_what_the_wheel_and_its_extra_declare_each_with_a_lowest_version(
    tmp_path: Path,
) -> None:
    found = {each.package: each for each in declared(build(tmp_path))}
    assert {"deltalake", "pandas", "pyspark"} <= found.keys()
    assert "databricks-sdk" not in found
    assert [each for each in found.values() if not each.lowest] == []


def loaded(*workers: str) -> str:
    told = {"driver": ["rivermouth", "ruamel.yaml"], "workers": ["rivermouth", *workers]}
    return f"WARNING: of Java\n{json.dumps(told)}\n"


def test_what_a_run_loads_is_what_was_installed() -> None:
    assert check_loaded(loaded("pandas"), INSTALLED) == ["driver 2 packages", "workers 2 packages"]
    with pytest.raises(Failed, match=r"workers: .*setuptools"):
        check_loaded(loaded("setuptools"), INSTALLED)
    with pytest.raises(Failed, match=r"workers: .*/elsewhere/own\.py"):
        check_loaded(loaded("/elsewhere/own.py"), INSTALLED)


def test_a_worker_that_has_not_decoded_proves_nothing() -> None:
    told = json.dumps({"driver": ["rivermouth"], "workers": ["pandas"]})
    with pytest.raises(Failed, match="workers"):
        check_loaded(told, INSTALLED)
