"""The packages that travel: those that tasks import, as they are here, and nothing of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.cluster.pack import packed
from rivermouth.cluster.session import FOLDER, travelling
from rivermouth.cluster.submit import submitted

pytestmark = pytest.mark.unit

PATH, ARCHIVES = "spark.executorEnv.PYTHONPATH", "spark.archives"


def test_the_package_travels_with_what_it_requires_at_any_depth() -> None:
    found = packed()
    assert {"rivermouth", "pyarrow", "numpy", "obstore", "confluent-kafka", "pandas"} <= {*found}
    assert "python-dateutil" in found, "pandas requires it"


def test_neither_spark_nor_what_packages_offer_as_extras_travels() -> None:
    assert {*packed()}.isdisjoint({"pyspark", "py4j", "delta-spark", "pytest", "mypy"})


@pytest.mark.parametrize(
    ("archive", "given", "expected"),
    [
        ("", {}, {}),
        ("/a.tar.gz", {}, {ARCHIVES: f"/a.tar.gz#{FOLDER}", PATH: f"./{FOLDER}"}),
        (
            "s3a://b/a.tar.gz",
            {ARCHIVES: "/mine.zip#mine", PATH: "mine"},
            {ARCHIVES: f"s3a://b/a.tar.gz#{FOLDER},/mine.zip#mine", PATH: f"./{FOLDER}:mine"},
        ),
    ],
)
def test_an_archive_goes_ahead_of_what_a_user_names(
    archive: str, given: dict[str, str], expected: dict[str, str]
) -> None:
    found = travelling(["/x.jar", "/y.jar"], archive, given)
    assert found["spark.jars"] == "/x.jar,/y.jar"
    assert {name: found.get(name) for name in (ARCHIVES, PATH) if name in found} == expected


def test_the_settings_of_spark_submit_name_no_folder_of_this_machine() -> None:
    found = submitted(["/pack/jars/x.jar"], "/pack/environment.tar.gz")
    assert found["spark.sql.extensions"].startswith("io.delta")
    assert not [name for name, text in found.items() if "unused" in text]
    assert str(Path.cwd()) not in str(found)
