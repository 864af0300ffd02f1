"""Accept a RESTORE or a reset of one pipeline's table (see RM411); the next ingest continues."""

from __future__ import annotations

from rivermouth.job import ACCEPTED, Job, finish, parameters


def main() -> int:
    parser = parameters(__doc__)
    parser.add_argument("--accept", choices=ACCEPTED, required=True, help="what happened")
    asked = parser.parse_args()
    return Job.of(asked).resume(asked.accept)


if __name__ == "__main__":
    finish(main)
