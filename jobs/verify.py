"""Prove against Kafka that no record is missing or duplicated. Exit code 3 for a fault."""

from __future__ import annotations

from rivermouth.job import Job, finish, parameters


def main() -> int:
    parser = parameters(__doc__)
    parser.add_argument("--strict", action="store_true", help="what cannot be checked is a fault")
    asked = parser.parse_args()
    return Job.of(asked).verify(strict=asked.strict)


if __name__ == "__main__":
    finish(main)
