"""Prove from Kafka that no record is missing or twice. Exit code 3 if not so."""

from __future__ import annotations

from rivermouth.job.job import Job, finish, parameters


def main() -> int:
    return Job.of(parameters(__doc__).parse_args()).verify()


if __name__ == "__main__":
    finish(main)
