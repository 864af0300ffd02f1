"""The CLI's own JSON Schema over every file of the bundle."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema_rs
import pytest

from tests.bundle.bundle_files import ROOT, read

pytestmark = pytest.mark.slow

FILES = [ROOT / "databricks.yml", *sorted((ROOT / "resources").glob("*.yml"))]


@pytest.fixture(scope="module")
def validator(databricks: Path) -> jsonschema_rs.Draft7Validator:
    command = [str(databricks), "bundle", "schema"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return jsonschema_rs.Draft7Validator(json.loads(done.stdout))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_the_bundle_is_one_by_the_clis_own_schema(
    validator: jsonschema_rs.Draft7Validator, path: Path
) -> None:
    assert [error.message for error in validator.iter_errors(read(path))] == []


def test_the_schema_refuses_a_key_that_nobody_knows(
    validator: jsonschema_rs.Draft7Validator,
) -> None:
    assert not validator.is_valid({"targets": {"dev": {"modus": "development"}}})
    assert not validator.is_valid({"resources": {"jobs": {"j": {"max_runs": 1}}}})
