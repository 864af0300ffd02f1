"""The command with the kinds of this folder: ``python -m tests.kinds run lake.yml``."""

from __future__ import annotations

from rivermouth.cli.app import main
from tests.kinds.kinds import register

if __name__ == "__main__":
    register()
    main()
