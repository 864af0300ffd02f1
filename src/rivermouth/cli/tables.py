"""``status``, ``verify``, ``sql`` and ``offsets``: what the tables say, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, Select, load_config, selected

if TYPE_CHECKING:
    from rivermouth.verify import Verification

Statement = Annotated[str, typer.Argument(metavar="STATEMENT", help='Such as "SELECT …".')]
offsets = typer.Typer(
    help="About the offsets table.", no_args_is_help=True, rich_markup_mode=None
)
