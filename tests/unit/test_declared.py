"""What the source imports is what the wheel declares."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.local.requirements import of_extras
from tests.wheel import ROOT, requirements

pytestmark = pytest.mark.unit

PACKAGE = ROOT / "src" / "rivermouth"
EXTRAS = ("local", "databricks", "msk", "registry", "protobuf", "metrics", "otel")
DISTRIBUTIONS = {
    "aws_msk_iam_sasl_signer": "aws-msk-iam-sasl-signer-python",
    "databricks": "databricks-sdk",
    "google": "protobuf",
    "opentelemetry": "opentelemetry-sdk",
    "ruamel": "ruamel.yaml",
}
"""Whose a module is, where that has another name."""
COMPANIONS = {"py4j": "pyspark", "pydantic_core": "pydantic"}
"""What a declared distribution pins itself, and tells its users to import."""
ONLY_IN = {
    "aws_msk_iam_sasl_signer": ("kafka/msk.py",),
    "databricks": ("databricks/",),
    "google": ("formats/protobuf/", "verification/formats/protobuf.py"),
    "opentelemetry": ("monitor/otel.py",),
    "prometheus_client": ("monitor/prometheus.py",),
    # pytest loads both by itself.
    "pytest": ("testing.py", "databricks/templates/test_project.py"),
}
"""Where a module may be imported that is not there in every installation that runs pipelines."""


def modules(file: Path) -> Iterator[str]:
    """The first names of all modules that a file imports, also by ``import_module``."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant))


def foreign() -> dict[str, set[str]]:
    """The modules of others that the package imports, each with the files that do it."""
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for name in {each.partition(".")[0] for each in modules(file)}:
            if name not in sys.stdlib_module_names and name != "rivermouth":
                found.setdefault(name, set()).add(file.relative_to(PACKAGE).as_posix())
    return found


def plain(distribution: str) -> str:
    """A name of a distribution as an index compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def distribution(module: str) -> str:
    return plain(DISTRIBUTIONS.get(module, COMPANIONS.get(module, module)))


FOREIGN = foreign()


def test_the_source_imports_nothing_that_the_wheel_does_not_declare() -> None:
    declared = {plain(each.package) for each in of_extras(requirements(), EXTRAS)}
    assert [each for each in FOREIGN if distribution(each) not in {*declared, "pytest"}] == []


@pytest.mark.parametrize("module", ONLY_IN)
def test_what_is_optional_is_imported_where_it_is_needed_alone(module: str) -> None:
    places = ONLY_IN[module]
    assert [each for each in FOREIGN[module] if not each.startswith(places)] == []


@pytest.mark.parametrize("module", COMPANIONS)
def test_a_companion_comes_with_what_is_declared(module: str) -> None:
    lines = importlib.metadata.requires(COMPANIONS[module]) or []
    names = {plain(re.split(r"[^\w.-]", each)[0]) for each in lines if "extra" not in each}
    assert plain(module) in names
