"""Compact the tables and remove what nothing needs any more. Exit code 5 if some failed."""

from __future__ import annotations

from rivermouth.cli.maintaining import render
from rivermouth.job.job import Job, finish, parameters
from rivermouth.local.scratch import scratch_root
from rivermouth.operate.maintain.maintenance import Maintenance, check_retention
from rivermouth.operate.maintain.optimize import WEEK_HOURS
from rivermouth.run.report import exit_code


def main() -> int:
    parser = parameters(__doc__)
    parser.add_argument(
        "--retain-hours", type=int, default=WEEK_HOURS, help="24 or more; default: %(default)s"
    )
    asked = parser.parse_args()
    check_retention(asked.retain_hours)
    job = Job.of(asked)
    maintenance = Maintenance(
        job.config, job.session, scratch_root(), retain_hours=asked.retain_hours
    )
    reports = maintenance.pipelines(job.names)
    print(render(reports, dry_run=False))
    return exit_code(reports)


if __name__ == "__main__":
    finish(main)
