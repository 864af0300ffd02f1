"""Compact the tables and remove what nothing needs any more. Exit code 5 if some failed."""

from __future__ import annotations

from rivermouth.databricks.job import WEEK_HOURS, Job, finish, parameters


def main() -> int:
    parser = parameters(__doc__)
    parser.add_argument(
        "--retain-hours", type=int, default=WEEK_HOURS, help="24 or more; default: %(default)s"
    )
    asked = parser.parse_args()
    return Job.of(asked).maintain(retain_hours=asked.retain_hours)


if __name__ == "__main__":
    finish(main)
