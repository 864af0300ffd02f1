"""Prove against Kafka that no record is missing or duplicated. Exit code 3 for a fault."""

from __future__ import annotations

from rivermouth.job import Job, finish, parameters


def main() -> int:
    return Job.of(parameters(__doc__).parse_args()).verify()


if __name__ == "__main__":
    finish(main)
