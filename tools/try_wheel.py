"""Install the wheel where nothing else is, and see it work: make wheel-demo.

    python tools/try_wheel.py [--lowest] [--python PYTHON]

Builds the wheel, makes an empty environment in a temporary folder, installs the wheel with its
extra ``local`` there, runs the demo, and compares what a run loads with what the wheel brings. One
line per step; the exit code is 0 only if all went well. Needs .venv: hatchling, pip, rivermouth.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rivermouth.local.requirements import Requirement, of_extras

ROOT = Path(__file__).resolve().parent.parent
EXTRA = "local"
# What would let the environment find more than is in it.
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYSPARK_PYTHON", "SPARK_HOME")
LISTED = (
    "import json; from importlib.metadata import distributions;"
    "print(json.dumps([(each.metadata['Name'], each.version) for each in distributions()]))"
)


class Failed(Exception):
    """A step did not end well; the text is what it said."""


@contextmanager
def step(what: str) -> Iterator[list[str]]:
    """A step, which is one line with its seconds; what is put into the list is shown behind it."""
    began, facts = time.monotonic(), list[str]()
    try:
        yield facts
    except BaseException:
        facts = ["FAILED"]
        raise
    finally:
        print(f"{time.monotonic() - began:6.1f} s  {what}: {', '.join(facts)}", flush=True)


def run(*command: object, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    """The output of a command. Raises Failed with all that it said."""
    done = subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env=None if environ is None else dict(environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def build(folder: Path) -> Path:
    """Build the wheel into a folder; its file."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def declared(wheel: Path) -> list[Requirement]:
    """What the wheel and its extra ask for directly."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    asked = [each.partition(": ")[2] for each in lines if each.startswith("Requires-Dist: ")]
    return of_extras(asked, (EXTRA,))


def install(wheel: Path, env: Path, python: str, lowest: bool) -> Mapping[str, str]:
    """Make an environment with the wheel and its extra alone; the versions that it has then.

    It gets no pip: that of this Python installs into it, so nothing of pip's is in it.
    """
    run(python, "-m", "venv", "--without-pip", env, cwd=env.parent)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", env)
    pins = [f"{each.package}=={each.lowest}\n" for each in declared(wheel)] if lowest else []
    constraints = env.parent / "constraints.txt"
    constraints.write_text("".join(pins), encoding="utf-8")
    asked = ("install", "--quiet", "--constraint", constraints, f"{wheel}[{EXTRA}]")
    run(*pip, *asked, cwd=env.parent)
    listed = json.loads(run(env / "bin" / "python", "-I", "-c", LISTED, cwd=env.parent))
    return {_plain(name): number for name, number in listed}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def check_loaded(text: str, installed: Mapping[str, str]) -> list[str]:
    """What was loaded, for people. Raises Failed where it comes from elsewhere."""
    loaded = json.loads(text.splitlines()[-1])
    for who, names in loaded.items():
        strange = [each for each in names if _plain(each) not in installed]
        if strange or "rivermouth" not in names:
            raise Failed(f"{who}: loaded what the wheel does not bring: {strange or names}")
    return [f"{who} {len(names)} packages" for who, names in loaded.items()]


def attempt(folder: Path, python: str, lowest: bool) -> None:
    """All steps, in a folder. Raises Failed."""
    env, own = folder / "env", folder / "own"
    own.mkdir()
    environ = {name: text for name, text in os.environ.items() if name not in HIDDEN}
    with step("wheel built") as facts:
        wheel = build(folder)
        facts.append(wheel.name)
    with step(f"installed with [{EXTRA}] where nothing else is") as facts:
        installed = install(wheel, env, python, lowest)
        direct = [_plain(each.package) for each in declared(wheel)]
        facts += [f"{each} {installed[each]}" for each in direct]
    with step("rivermouth demo") as facts:
        said = run(env / "bin" / "rivermouth", "demo", cwd=own, environ=environ)
        facts += [line for line in said.splitlines() if line.startswith("OK: ")][-1:]
    with step("loaded") as facts:
        script = ROOT / "tools" / "loaded.py"
        facts += check_loaded(
            run(env / "bin" / "python", "-I", script, own / "loaded", cwd=own, environ=environ),
            installed,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--lowest", action="store_true", help="the lowest versions declared")
    parser.add_argument("--python", default=sys.executable, help="default: this one")
    asked = parser.parse_args()
    began = time.monotonic()
    versions = "lowest" if asked.lowest else "newest"
    print(f"the wheel with the {versions} versions, on {asked.python}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rivermouth-wheel-") as folder:
        try:
            attempt(Path(folder), asked.python, asked.lowest)
        except Failed as failed:
            print(f"{failed}\nFAILED", file=sys.stderr)
            return 1
    print(f"OK in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
