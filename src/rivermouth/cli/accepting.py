"""``accept-deletes``: rows of a table were deleted on purpose, and the ledger remembers it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, load_local, named

if TYPE_CHECKING:
    from rivermouth.run.deletes import AcceptedDelete

Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline of the table.")]
Versions = Annotated[
    str,
    typer.Option(
        "--versions",
        metavar="12,15-17",
        help="The versions of the table at which somebody deleted rows, each by a DELETE with a "
        "predicate.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the DELETEs; write nothing.")]

_PART = re.compile(r"\s*(\d{1,12})\s*(?:-\s*(\d{1,12})\s*)?")
_AT_ONCE = 1000


def accept_deletes(
    file: ConfigFile,
    pipeline: Pipeline,
    versions: Versions,
    dry_run: DryRun = False,
    json: AsJson = False,
) -> None:
    """Accept DELETEs of others: their rows are gone on purpose.

    Writes a ledger entry that records which rows each DELETE took, by their offsets, so that verify
    stays exact about all other rows. Needs the files from before the DELETE: run it before VACUUM.
    Only DELETE is accepted, not UPDATE or MERGE.
    """
    wanted = versions_in(versions)
    config = load_local(file)
    name = named(config, pipeline)
    from rivermouth.cli.outcome import deletes_accepted, shown_delete
    from rivermouth.cli.render import as_json, console
    from rivermouth.cli.running import local_run
    from rivermouth.local.typed import typed

    shown = console(stderr=json)

    def tell(each: AcceptedDelete) -> None:
        shown.print(shown_delete(name, each), soft_wrap=True, markup=False)

    with local_run(config, shown) as run:
        found = run.accept_deletes(name, wanted, tell, dry_run=dry_run)
    shown.print(deletes_accepted(found, dry_run=dry_run), soft_wrap=True)
    if not dry_run:
        shown.print(f"Next: {typed('verify', file)}", soft_wrap=True)
    if json:
        as_json({"name": name, "dry_run": dry_run, "deletes": [each.as_dict() for each in found]})


def versions_in(text: str) -> list[int]:
    """The versions that ``12,15-17`` names, in order. Raises ConfigError."""
    from rivermouth.errors import ConfigError

    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + _AT_ONCE:
            line = f'--versions: "{part.strip()}" is no version and no range; write 12,15-17'
            raise ConfigError((line,))
        found |= {*range(first, last + 1)}
    return sorted(found)
