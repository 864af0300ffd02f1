"""``doctor`` names each package, and the Python, that a batch could not be carried out with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError

import pytest

from rivermouth.local.jars import read_lock
from rivermouth.local.requirements import Requirement, of_extras
from rivermouth.operate import doctor
from rivermouth.operate.doctor import Check, check_installed, check_packages, check_python
from tests.wheel import requirements

pytestmark = pytest.mark.unit

WANTED = (Requirement("deltalake", ">=1.6.6"), Requirement("pandas", ">=2.2,<3", "local"))


def checked(installed: Mapping[str, str]) -> list[Check]:
    def version(package: str) -> str:
        if package not in installed:
            raise PackageNotFoundError(package)
        return installed[package]

    return [*check_packages(WANTED, version)]


def test_packages_that_are_as_declared_are_one_line() -> None:
    found = checked({"deltalake": "1.6.6", "pandas": "2.3.3"})
    assert found == [Check("packages", True, "deltalake 1.6.6, pandas 2.3.3")]


@pytest.mark.parametrize(
    ("installed", "found"),
    [
        ({"deltalake": "1.6.6"}, "not installed; needed is pandas>=2.2,<3"),
        (
            {"deltalake": "1.6.6", "pandas": "2.1.4"},
            "2.1.4 is too old; needed is pandas>=2.2,<3",
        ),
        (
            {"deltalake": "1.6.6", "pandas": "3.0.0"},
            "3.0.0 is too new; needed is pandas>=2.2,<3",
        ),
    ],
    ids=["missing", "too old", "too new"],
)
def test_a_package_that_is_not_as_declared_is_named_with_the_remedy(
    installed: Mapping[str, str], found: str
) -> None:
    fix = "pip install 'pandas>=2.2,<3'"
    assert checked(installed) == [Check("pandas", False, found, fix)]


def test_all_that_a_batch_needs_is_looked_at() -> None:
    looked_at = {each.package for each in of_extras(requirements(), (doctor.EXTRA,))}
    needed = "confluent-kafka delta-spark deltalake numpy pandas pyarrow pyspark"
    assert {*needed.split()} <= looked_at


@pytest.mark.parametrize(
    ("package", "jar"),
    [("pyspark", "spark-sql-kafka-0-10_2.13"), ("delta-spark", "delta-spark_4.2_2.13")],
)
def test_a_package_with_jars_is_declared_in_the_version_of_the_locked_ones(
    package: str, jar: str
) -> None:
    locked = {each.coordinate.name: each.coordinate.version for each in read_lock()["spark"]}
    [declared] = (each for each in of_extras(requirements(), ("local",)) if each.package == package)
    assert declared.bounds == f"=={locked[jar]}"


@pytest.mark.parametrize(
    ("version", "said"),
    [("3.9.18 (main)", ", too old"), ("3.10.0 (main)", ""), ("3.15.0a1 (main)", ", too new")],
)
def test_a_python_that_is_not_supported_is_told(version: str, said: str) -> None:
    found = check_python(Requirement.parse("Python<3.15,>=3.10"), version)
    assert (found.ok, found.found) == (not said, f"{version[:-7]} at {sys.executable}{said}")
    assert found.fix == "Use Python<3.15,>=3.10"


def test_a_source_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> Requirement:
        raise PackageNotFoundError("rivermouth")

    monkeypatch.setattr(doctor, "python", nothing)
    [found] = check_installed()
    assert (found.name, found.ok) == ("packages", False)
    assert found.fix == "pip install 'rivermouth[local]'"
