"""A step of a trace, in words."""

from __future__ import annotations

from tests.faults.model.machine import Action
from tests.faults.model.opening import ACCEPT, DELETES, OLD, RECORD, TOPIC, TRUNCATION
from tests.faults.model.state import HALTED, READY, STAGED, Entry, State

OPTIONS = {
    ACCEPT: "to accept what was undone",
    TOPIC: "to accept another topic",
    TRUNCATION: "to accept that the log was cut",
    DELETES: "to accept a DELETE",
    RECORD: "with on_data_loss: record",
    OLD: "while its newest entry is old",
}

DRIVER = {
    "project": "brings the offsets table up to date",
    "hand_over": "goes on before its entry is projected",
    "send": "sends a record",
    "stage": "reads the batch, and shows nobody",
    "see": "sees what Kafka says",
    "read_back": "reads the log back",
    "fail": "has its write fail",
    "close": "ends its run",
    "crash": "is killed",
    "orphan": "loses its Python; the JVM lives on",
    "leap": "is led by Spark over the records that retention took",
    "lose_checkpoint": "loses its checkpoint",
}

WORLD = {
    "produce": "records arrive up to {}",
    "expire": "retention deletes what is before {}",
    "recreate": "the topic is created anew, with {} records",
    "cut": "the log is cut at {}",
    "optimize": "somebody runs OPTIMIZE",
    "vacuum": "VACUUM takes files that wait",
    "restore": "somebody restores version {}",
    "empty": "somebody truncates the table",
    "delete": "somebody deletes the row of offset {} on purpose",
    "trim": "log clean-up takes all before version {}",
    "drop": "the table is dropped and made anew",
    "lose_tail": "the table is put back from a backup of version {}",
    "lose_offsets": "the offsets table is put back, with {} entries",
}


def in_words(action: Action, before: State, after: State) -> str:
    """What happened, as one would tell it."""
    name, *rest = action
    if name == "alter":
        return f"the table is altered{', and asks for the writer of Spark' if rest[0] else ''}"
    if name == "settle":
        return f"the open transaction is {'committed' if rest[0] else 'aborted'}"
    if name in WORLD:
        return WORLD[name].format(*rest)
    d = int(rest[0])
    told = f"{'AB'[d]} {_told(name, d, rest, before, after)}"
    halt = after.drivers[d]
    return f"{told}, and halts: {halt.code}" if halt.phase == HALTED else told


def _told(name: str, d: int, rest: list[object], before: State, after: State) -> str:
    driver = after.drivers[d]
    if name == "start":
        options = rest[1] if isinstance(rest[1], tuple) else ()
        asked = "".join(f" {OPTIONS[each]}" for each in options)
        stands = "" if driver.phase == HALTED else f" at {driver.stream}"
        return f"starts{asked}{stands}"
    if name == "plan":
        kind, start, until = rest[1:4]
        what = f"a batch [{start},{until})" if kind == "batch" else f"{kind} [{start},{until})"
        number = f" as entry {driver.planned.sequence}" if driver.planned else ""
        return f"plans {what}{number}"
    if name == "write" and driver.phase == READY:
        return "finds only bad records and commits nothing"
    if name == "write_files":
        return _written(d, before, after)
    if name == "write":
        ahead = len(after.table.quarantine) > len(before.table.quarantine)
        return "writes bad records ahead" if ahead else "is about to write"
    if name == "begin":
        skipped = driver.phase not in (HALTED, "committing")
        return "commits, and Delta skips it silently" if skipped else "begins its transaction"
    if name == "land":
        return _landed(d, before, after)
    return DRIVER[name]


def _written(d: int, before: State, after: State) -> str:
    driver = after.drivers[d]
    if driver.phase != STAGED:
        return "writes no file: its plan is stale"
    again = before.drivers[d].waiting is not None and driver.planned and driver.planned.read
    ahead = len(after.table.quarantine) > len(before.table.quarantine)
    what = "takes files that wait" if again and not ahead else "writes files"
    return f"{what}, and bad records ahead" if ahead else what


def _landed(d: int, before: State, after: State) -> str:
    entry = before.drivers[d].planned
    if before.table.log == after.table.log or entry is None:
        files = entry is not None and entry.as_files
        return "is refused: others took its version" if files else "is refused: a rival's txn"
    versions = [n for n, each in enumerate(after.table.log) if isinstance(each, Entry)]
    version = next(n for n in versions if after.table.log[n] == entry)
    over = len(before.table.log) == len(after.table.log)
    return f"commits entry {entry.sequence} as version {version}{' over a rival' * over}"
