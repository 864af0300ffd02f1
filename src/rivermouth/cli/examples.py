"""Two examples for each command: what it does, and the line to type. ``--help`` ends with them."""

from __future__ import annotations

from collections.abc import Mapping

Example = tuple[str, str]

EXAMPLES: Mapping[str, tuple[Example, Example]] = {
    "init": (
        (
            "Write lake.yml, with a pipeline for each topic.",
            "rivermouth init orders customers --bootstrap-servers localhost:9092",
        ),
        (
            "The same for values whose schemas a registry has.",
            "rivermouth init orders --bootstrap-servers k:9092 --registry http://r:8081",
        ),
    ),
    "schema infer": (
        (
            "Print the columns of a topic.",
            "rivermouth schema infer orders --bootstrap-servers localhost:9092",
        ),
        (
            "Print all that was seen, for a program.",
            "rivermouth schema infer orders --bootstrap-servers localhost:9092 --json",
        ),
    ),
    "run": (
        ("Read up to where the topics end now.", "rivermouth run lake.yml"),
        (
            "Go on with one pipeline until Ctrl-C.",
            "rivermouth run lake.yml --continuous --select orders",
        ),
    ),
    "resume": (
        (
            "Show what it means to go on after a RESTORE.",
            "rivermouth resume lake.yml orders --accept restore --dry-run",
        ),
        (
            "Go on in a topic that was deleted and created again.",
            "rivermouth resume lake.yml orders --accept topic",
        ),
    ),
    "accept-deletes": (
        (
            "Show which rows two versions of the table lost.",
            "rivermouth accept-deletes lake.yml orders --versions 12,15 --dry-run",
        ),
        (
            "Record the DELETEs of three versions.",
            "rivermouth accept-deletes lake.yml orders --versions 15-17",
        ),
    ),
    "replay": (
        (
            "Show what reading again from a time would change.",
            "rivermouth replay lake.yml orders --from 2026-11-01T06:00:00Z --dry-run",
        ),
        (
            "Write the rows from an offset on into a table of their own.",
            "rivermouth replay lake.yml orders --from orders:0:120 --into tmp.orders",
        ),
    ),
    "status": (
        ("Show where each pipeline stands.", "rivermouth status lake.yml"),
        ("Look again and again, until Ctrl-C.", "rivermouth status lake.yml --watch"),
    ),
    "topic": (
        ("Show what a topic holds.", "rivermouth topic lake.yml orders"),
        (
            "Show also the first offsets from a time on.",
            "rivermouth topic lake.yml orders --at 2026-11-01T06:00:00Z",
        ),
    ),
    "preview": (
        ("Show what the newest records would become.", "rivermouth preview lake.yml orders"),
        (
            "Show the first hundred for a program.",
            "rivermouth preview lake.yml orders -o beginning -n 100 --json",
        ),
    ),
    "report": (
        ("Write one page about all pipelines.", "rivermouth report lake.yml -o report.html"),
        ("Serve it to this machine.", "rivermouth report lake.yml --serve :8080"),
    ),
    "plan": (
        ("Show what the next run would do.", "rivermouth plan lake.yml"),
        ("Show the same for a program.", "rivermouth plan lake.yml --json"),
    ),
    "peek": (
        ("Show the last ten records of each partition.", "rivermouth peek lake.yml orders -o -10"),
        (
            "Show what comes with a key, as bytes.",
            "rivermouth peek lake.yml orders --key 17 --raw --follow",
        ),
    ),
    "history": (
        (
            "Show the commits of the last day.",
            "rivermouth history lake.yml orders --since 1d",
        ),
        (
            "Write all commits into a file.",
            "rivermouth history lake.yml orders -n 0 --csv > orders.csv",
        ),
    ),
    "at": (
        (
            "Show where a pipeline stood twelve hours ago.",
            "rivermouth at lake.yml orders --time 12h",
        ),
        (
            "Show from which version on a record had been read.",
            "rivermouth at lake.yml orders --offset orders:0:1200",
        ),
    ),
    "verify": (
        (
            "Prove what was committed since the last proof.",
            "rivermouth verify lake.yml --since last",
        ),
        (
            "Compare every value of one pipeline.",
            "rivermouth verify lake.yml --select orders --strict",
        ),
    ),
    "sql": (
        (
            "Count the rows of a table.",
            'rivermouth sql lake.yml "SELECT count(*) FROM silver.orders"',
        ),
        (
            "Show why records are in quarantine.",
            'rivermouth sql lake.yml "SELECT reason FROM silver.orders_quarantine"',
        ),
    ),
    "maintain": (
        ("Show what would be removed.", "rivermouth maintain lake.yml --dry-run"),
        ("Compact one table, and clean it up.", "rivermouth maintain lake.yml --select orders"),
    ),
    "offsets rebuild": (
        ("Make the offsets table anew.", "rivermouth offsets rebuild lake.yml"),
        (
            "Make it anew, and compare it with the tables.",
            "rivermouth offsets rebuild lake.yml && rivermouth verify lake.yml",
        ),
    ),
    "validate": (
        ("Check a file.", "rivermouth validate lake.yml"),
        ("Run only what is valid.", "rivermouth validate lake.yml && rivermouth run lake.yml"),
    ),
    "config schema": (
        ("Write the schema for an editor.", "rivermouth config schema > rivermouth.schema.json"),
        (
            "Show what a pipeline may hold.",
            "rivermouth config schema | jq .properties.pipelines",
        ),
    ),
    "bundle init": (
        ("Write a project with an example in it.", "rivermouth bundle init my-lake"),
        ("Write one around a file of yours.", "rivermouth bundle init my-lake --config lake.yml"),
    ),
    "cluster pack": (
        ("Write into a folder what spark-submit needs.", "rivermouth cluster pack packed"),
        (
            "Write it for a cluster that finds the folder elsewhere.",
            "rivermouth cluster pack packed --at s3a://bucket/packed",
        ),
    ),
    "doctor": (
        ("Check this machine.", "rivermouth doctor"),
        ("Check what a file needs.", "rivermouth doctor lake.yml"),
    ),
    "broker": (
        ("Run a broker whose data goes with it.", "rivermouth broker"),
        ("Run one that keeps its data.", "rivermouth broker --port 9092 --dir kafka"),
    ),
    "registry": (
        ("Run a schema registry.", "rivermouth registry"),
        ("Run one at a port.", "rivermouth registry --port 8081"),
    ),
    "store": (
        ("Run an object store whose data goes with it.", "rivermouth store"),
        ("Run one that keeps its data.", "rivermouth store --port 9000 --dir objects"),
    ),
    "demo": (
        ("See a driver killed, and the proof.", "rivermouth demo"),
        (
            "See it in an object store, and keep the broker running.",
            "rivermouth demo --store --keep",
        ),
    ),
    "completion": (
        ("Complete in each new bash.", "rivermouth completion bash >> ~/.bashrc"),
        ("Complete in this fish.", "rivermouth completion fish | source"),
    ),
}
"""By the words of the command: what each example does, and its line."""


def epilog(command: str) -> str:
    """The end of the help of a command."""
    lines = (f"  {what}\n    {line}" for what, line in EXAMPLES[command])
    return "\n".join(("\b", "Examples:", *lines))
