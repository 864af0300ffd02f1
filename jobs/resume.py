"""Accept what halted one pipeline, as ``rivermouth resume`` does; the next ingest continues."""

from __future__ import annotations

from rivermouth.databricks.job import Job, finish, parameters


def main() -> int:
    parser = parameters(__doc__)
    parser.add_argument("--accept", required=True, help="what happened; see rivermouth resume")
    parser.add_argument("--offsets", default="", help="same, start or a file, for another cluster")
    asked = parser.parse_args()
    return Job.of(asked).resume(asked.accept, asked.offsets)


if __name__ == "__main__":
    finish(main)
