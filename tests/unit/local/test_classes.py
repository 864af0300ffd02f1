"""Which archive of classes a JVM of ours takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rivermouth.local.java import Java, archive_file, archive_options

pytestmark = pytest.mark.unit

JAVA = Java(Path("/java"), 17, "PATH")
JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("environment")
def test_another_java_or_other_jars_in_another_order_have_another_archive() -> None:
    other = Java(Path("/other"), 17, "PATH")
    files = {
        archive_file(JAVA, JARS),
        archive_file(other, JARS),
        archive_file(JAVA, JARS[::-1]),
        archive_file(JAVA, JARS[:1]),
    }
    assert len(files) == 4


def test_an_archive_is_named_only_where_it_was_recorded(environment: Path) -> None:
    assert archive_options(JAVA, JARS) == ()
    file = archive_file(JAVA, JARS)
    assert environment in file.parents
    file.parent.mkdir(parents=True)
    file.touch()
    assert archive_options(JAVA, JARS) == (f"-XX:SharedArchiveFile={file}", "-Xlog:disable")
