"""Prove against Kafka that no record is missing or duplicated. Exit code 3 for a fault."""

from __future__ import annotations

from rivermouth.databricks.job import Job, finish, parameters


def main() -> int:
    parser = parameters(__doc__)
    parser.add_argument("--strict", action="store_true", help="what cannot be checked is a fault")
    parser.add_argument("--since", default="", help="last, a time, or a duration such as 1d")
    parser.add_argument("--no-record", action="store_true", help="do not record what is proved")
    asked = parser.parse_args()
    keep = not asked.no_record
    return Job.of(asked).verify(strict=asked.strict, since=asked.since, record=keep)


if __name__ == "__main__":
    finish(main)
