"""``maintain``: compacts small files and removes what nothing needs any more."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, Select, known_secrets, load_local

RetainHours = Annotated[
    int,
    typer.Option(
        "--retain-hours", help="Refuse tables that keep old files for less time; 24 or more."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")]


def maintain(
    file: ConfigFile,
    select: Select = "",
    retain_hours: RetainHours = 168,
    dry_run: DryRun = False,
    json: AsJson = False,
) -> None:
    """Compact the tables and remove what nothing needs.

    Removes old data files, quarantine rows whose commit never happened, and scratch of dead
    runs. No effective row changes. No run on this machine may write the tables at that time.
    """
    config = load_local(file)
    names = config.selected(select)
    from rivermouth.run.starting import local_spark, require_spark

    require_spark()  # the package: tables by files need no session of it
    from rivermouth.local.scratch import scratch_root
    from rivermouth.operate.maintain import Maintenance, check_retention
    from rivermouth.run.outcome import maintained
    from rivermouth.run.report import exit_code
    from rivermouth.run.text import as_json, console

    check_retention(retain_hours)
    with local_spark(config, console(stderr=True), known_secrets(), ()) as spark:
        maintenance = Maintenance(
            config,
            spark,
            scratch_root(),
            retain_hours=retain_hours,
            dry_run=dry_run,
            secrets=known_secrets(),
        )
        reports = maintenance.pipelines(names)
    if json:
        as_json({"dry_run": dry_run, "pipelines": [each.as_dict() for each in reports]})
    else:
        typer.echo(maintained(reports, dry_run=dry_run))
    raise typer.Exit(exit_code(reports))
