"""Bring the tables up to date: up to the end of the topics now, or until stopped."""

from __future__ import annotations

from rivermouth.databricks.job import Job, finish, parameters


def main() -> int:
    parser = parameters(__doc__)
    parser.add_argument("--continuous", action="store_true", help="run until stopped")
    asked = parser.parse_args()
    return Job.of(asked).ingest(continuous=asked.continuous)


if __name__ == "__main__":
    finish(main)
