"""The jars: fetched once from a real Ivy repository in a folder, and held against the lock."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rivermouth.errors import JarMismatch, JarsUnreachable, SetupError
from rivermouth.local.jars import Downloading, jars, read_lock
from tests.processes import said_by, started

pytestmark = pytest.mark.unit

ONE, TWO = "org.one:one_2.13:1.0", "org.two:two:2.0-10"


@dataclass(frozen=True)
class Mirror:
    """A repository in a folder, an environment that points at it, and a lock of its jars."""

    repository: Path
    settings: Path
    cache: Path
    lock: Path
    environ: dict[str, str]

    def jars(self) -> tuple[Path, ...]:
        return jars("pair", environ=self.environ, lock=self.lock)


def publish(repository: Path, coordinate: str, content: bytes) -> str:
    group, name, version = coordinate.split(":")
    folder = repository / group / name / version
    folder.mkdir(parents=True)
    (folder / f"{name}-{version}.jar").write_bytes(content)
    return f"{coordinate} {hashlib.sha256(content).hexdigest()}\n"


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    repository = tmp_path / "repository"
    lines = publish(repository, TWO, b"two"), publish(repository, ONE, b"one")
    lock = tmp_path / "jars.lock"
    lock.write_text("# a comment\n\n[pair]\n" + "".join(lines) + "\n[none]\n")
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="folder"/><resolvers>'
        '<filesystem name="folder"><artifact pattern="'
        f'{repository}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    cache = tmp_path / "cache"
    named = {"RIVERMOUTH_CACHE": str(cache), "RIVERMOUTH_IVY_SETTINGS": str(settings)}
    return Mirror(repository, settings, cache, lock, {**os.environ, **named})


def test_a_set_is_fetched_in_the_order_of_the_lock_and_counted(mirror: Mirror) -> None:
    told: list[tuple[str, int, int]] = []
    files = jars(
        "pair", environ=mirror.environ, lock=mirror.lock, progress=lambda *facts: told.append(facts)
    )
    assert [file.name for file in files] == ["two-2.0-10.jar", "one_2.13-1.0.jar"]
    assert [file.read_bytes() for file in files] == [b"two", b"one"]
    assert told == [("pair", 0, 2), ("pair", 1, 2), ("pair", 2, 2)]
    cached = sorted(path.name for path in (mirror.cache / "jars").iterdir())
    assert cached == ["one_2.13-1.0.jar", "two-2.0-10.jar"]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO) -> str:
    """What is written while two sets are downloaded, the second one in vain."""
    progress = Downloading(stream)
    for done in range(3):
        progress("pair", done, 2)
    progress("broker", 0, 46)
    return stream.getvalue()


def test_a_download_is_one_line_for_each_set() -> None:
    pair, broker = "downloading 2 jars (set pair)", "downloading 46 jars (set broker)"
    assert told(io.StringIO()) == f"{pair}\n{broker}\n"
    over = "\x1b[A\r\x1b[K"
    assert told(Terminal()) == (f"{pair}: 0\n{over}{pair}: 1\n{over}{pair}: 2\n{broker}: 0\n"), (
        "an error that follows is on a line of its own"
    )


def test_the_second_call_needs_neither_repository_nor_java(mirror: Mirror) -> None:
    first = mirror.jars()
    shutil.rmtree(mirror.repository)
    mirror.settings.unlink()
    bare = {"RIVERMOUTH_CACHE": str(mirror.cache), "PATH": "", "JAVA_HOME": "/nonexistent"}
    assert jars("pair", environ=bare, lock=mirror.lock) == first


def test_only_what_is_missing_is_fetched(mirror: Mirror) -> None:
    files = mirror.jars()
    files[0].unlink()
    shutil.rmtree(mirror.repository / "org.one")
    assert mirror.jars() == files
    assert files[0].read_bytes() == b"two"


def test_a_downloaded_jar_that_differs_never_enters_the_cache(mirror: Mirror) -> None:
    (mirror.repository / "org.one/one_2.13/1.0/one_2.13-1.0.jar").write_bytes(b"evil")
    with pytest.raises(JarMismatch, match=r"RM204 .*org\.one:one_2\.13:1\.0 is not the file"):
        mirror.jars()
    assert [path.name for path in (mirror.cache / "jars").glob("**/one*")] == []


def test_a_cached_jar_that_was_altered_is_noticed(mirror: Mirror) -> None:
    altered = mirror.jars()[1]
    altered.write_bytes(b"eno")
    with pytest.raises(JarMismatch, match=re.escape(str(altered))):
        mirror.jars()


def test_a_new_lock_is_checked_against_the_files_that_are_there(mirror: Mirror) -> None:
    mirror.jars()
    mirror.lock.write_text(
        mirror.lock.read_text().replace("[pair]\n", f"[pair]\na:b:1 {'0' * 64}\n")
    )
    with pytest.raises(JarsUnreachable):
        mirror.jars()


@pytest.mark.parametrize("missing", ["repository", "settings"])
def test_an_unreachable_repository_is_one_line_with_the_remedy(
    mirror: Mirror, missing: str
) -> None:
    shutil.rmtree(mirror.repository)
    if missing == "settings":
        mirror.settings.unlink()
    with pytest.raises(JarsUnreachable) as raised:
        mirror.jars()
    assert str(raised.value).startswith("RM203 ")
    assert raised.value.remedy
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_cache_that_cannot_be_written_is_named(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    environ = {**mirror.environ, "RIVERMOUTH_CACHE": str(tmp_path / "file")}
    with pytest.raises(SetupError, match="RIVERMOUTH_CACHE"):
        jars("pair", environ=environ, lock=mirror.lock)


def test_processes_that_fetch_at_once_do_not_disturb_each_other(mirror: Mirror) -> None:
    code = (
        "import sys; from pathlib import Path; from rivermouth.local.jars import jars;"
        "print(*[path.read_text() for path in jars('pair', lock=Path(sys.argv[1]))])"
    )
    command = [sys.executable, "-c", code, str(mirror.lock)]
    with started(command, mirror.environ) as one, started(command, mirror.environ) as other:
        assert [said_by(one), said_by(other)] == ["two one\n"] * 2


def test_the_lock_of_the_package_is_whole() -> None:
    sets = read_lock()
    assert {name: len(listed) for name, listed in sets.items()} == {
        "spark": 11,
        "broker": 46,
        "registry": 1,
        "debezium": 66,
        "converter": 32,
        "store": 20,
        "peers": 1,
    }
    every = {jar for listed in sets.values() for jar in listed}
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in every)
    assert len({jar.file_name for jar in every}) == len(every), "the cache is one flat folder"
