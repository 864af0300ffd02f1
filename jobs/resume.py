"""Accept a RESTORE or a reset of one pipeline's table (see RM411); the next ingest goes on."""

from __future__ import annotations

from rivermouth.cli.resuming import Accept
from rivermouth.job.job import Job, finish, parameters


def main() -> int:
    parser = parameters(__doc__)
    kinds = [each.value for each in Accept]
    parser.add_argument("--accept", choices=kinds, required=True, help="what happened")
    asked = parser.parse_args()
    return Job.of(asked).resume(Accept(asked.accept))


if __name__ == "__main__":
    finish(main)
