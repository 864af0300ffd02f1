"""Replaying one partition of a trace on the model: one method for each step of a driver."""

from __future__ import annotations

from tests.faults.model.definition import definition
from tests.faults.model.effects import FIRST, LAST
from tests.faults.model.machine import AS_FILES, SPARK
from tests.faults.model.opening import (
    LEDGER_BROKEN,
    LEDGER_TRIMMED,
    OFFSETS_TABLE_AHEAD,
    OLD,
    RECORD,
    SUPERSEDED,
    TABLE_UNDONE,
)
from tests.faults.model.reading import projected, walk
from tests.faults.model.sending import is_due
from tests.faults.model.stage import FAR
from tests.faults.model.starting import Starting
from tests.faults.model.state import (
    ACCEPTING,
    COMMITTING,
    DEAD,
    DUE,
    HALTED,
    HEARTBEAT,
    LOSS,
    PLANNED,
    READY,
    RESUME,
    RETURNED,
    SEEN,
    STAGED,
    VERIFIED,
    put,
)
from tests.faults.model.trace import Line, LogCommit

PROJECTION_FAILED = ("RM505", "RM802", "RM803")
"""Codes by which a driver ends that could not write to the offsets table, or thinks so."""
FROM_THE_LOG = (SUPERSEDED, LEDGER_BROKEN, TABLE_UNDONE, LEDGER_TRIMMED, OFFSETS_TABLE_AHEAD)
"""Halts that the log and the offsets table must explain; others are about Kafka or settings."""
AGAIN = "replay"
"""The command that applies records once more, and its entry: it moves nothing, like a heartbeat."""


class Replay(Starting):
    """The model on its way along a trace, for one partition."""

    def run(self) -> dict[int, str]:
        """Replay every line, and then what the log holds beyond the last.

        Raises Refused. Returns, by line, the halts for which this partition has no reason.
        """
        self.unexplained: dict[int, str] = {}
        self.applying: set[str] = set()
        self.seen: set[object] = set()
        steps = {
            "open": self._open,
            "plan": self._plan,
            "write": self._write,
            "see": self._see,
            "send": self._send,
            "sent": self._sent,
            "returned": self._returned,
            "read_back": self._read_back,
            "project": self._project,
            "halt": self._halt,
            "close": self._close,
        }
        for line in self.lines:
            self.line = line
            steps[line.step](line)
        self.line = Line(0, "", "", "", {})
        self.advance(max(self.commits, default=-1))
        return self.unexplained

    def _open(self, line: Line) -> None:
        if line.process in self.applying:  # the command has ended, and its process goes on
            self.applying.remove(line.process)
            self.crash(self.driver(line))
        d = self.expect(line, DEAD, HALTED)
        version = int(line.facts["version"])
        if version < self.newest:
            raise self.refused(f"open reads version {version}; {self.newest} was there before it")
        self.advance(version)
        known = projected(self.state.table.offsets)
        said = int(line.facts["projected"])
        self.bury(line, projected_silently=said if known < said else 0)
        if line.facts.get("accept") == AGAIN:
            self.applying.add(line.process)
            self._start(d, OLD)
        elif "accept" in line.facts:
            self._start_command(d)
        else:
            self._start_run(d)
        driver, table = self.state.drivers[d], self.state.table
        self.claim("sequence", driver.sequence, line.facts["sequence"])
        self.claim("projected", projected(table.offsets), line.facts["projected"])

    def _start_run(self, d: int) -> None:
        """Start a run, whose ledger is sound: so it must say where that stands."""
        loses = self._records_loss(d)
        self._start(d, RECORD if loses else "")
        driver = self.state.drivers[d]
        if loses and driver.stream is None and driver.newest is not None:
            # The partition is seen for the first time, and retention has passed its beginning.
            self.state = put(self.state, d, driver._replace(owes=LOSS, stream=0))
        facts, table = self.line.facts, self.state.table
        ledger = walk(table.log, table.first, True, True)
        standing = ledger.stands.sequence if ledger.stands else 0
        stands = standing if ledger.newest else driver.sequence
        self.claim("standing", stands, facts["standing"])
        position = driver.newest.until if driver.newest else None
        self.claim("position", position, self.line.position_of(self.place))

    def _plan(self, line: Line) -> None:
        kind = str(line.facts["kind"])
        self._hand_over(line)
        d = self.expect(line, READY)
        driver = self.state.drivers[d]
        if kind == RESUME and driver.owes in ACCEPTING:
            kind = driver.owes
        kind = HEARTBEAT if kind == AGAIN and line.process in self.applying else kind
        start, until = line.range_of(self.place) or (driver.stream, driver.stream)
        beside = bool(line.facts.get("beside"))
        if not self.take(("plan", d, kind, start, until, beside)):
            stands = f"the ledger stands at {driver.stream}"
            owes = f", and {driver.owes} comes first" if driver.owes else ""
            raise self.refused(f"plan of {kind} [{start},{until}), but {stands}{owes}")
        planned = self.state.drivers[d].planned
        self.claim("sequence", planned and planned.sequence, line.facts["sequence"])

    def _write(self, line: Line) -> None:
        d, commit = self.expect(line, PLANNED), line.facts["commit"]
        landed = self.commits.get(self.versions.get(commit, -1))
        if self.state.drivers[d].look == DUE:
            self._look(d, landed)
        way = AS_FILES if landed is not None and landed.as_files else SPARK
        if way == AS_FILES and definition(self.state.table.log)[1]:
            raise self.refused("a commit by the driver, but the table asks for Spark's writer")
        if not self.take((way, d, commit)):
            raise self.refused(f"write under commit id {commit}, which was used before")
        planned = self.state.drivers[d].planned
        assert planned is not None
        self.claim("sequence", planned.sequence, line.facts["sequence"])
        named = line.range_of(self.place) or (planned.until, planned.until)
        self.claim("range", (planned.start, planned.until), named)
        self.claim("position", planned.until, line.position_of(self.place))
        if landed is not None and landed.applied == 0:  # none is good, so none is sent
            driver = self.state.drivers[d]._replace(attempt=None, unsent=())
            self.state = put(self.state, d, driver)

    def _look(self, d: int, landed: LogCommit | None) -> None:
        """Take the look at Kafka that a later line tells: nothing of this write came before it.

        Where nothing landed, the driver need not have come so far, and the look may have halted it.
        """
        commit = self.line.facts["commit"]
        if any(each.step == "see" and each.facts["commit"] == commit for each in self._mine()):
            self.take(("see", d))
            return
        if landed is not None:
            raise self.refused(f"commit {commit} landed, and nobody had looked at Kafka")
        self.state = put(self.state, d, self.state.drivers[d]._replace(look=SEEN))

    def _see(self, line: Line) -> None:
        """Kafka was looked at beside the reading, once, in a write that has not returned."""
        d = self.expect(line, STAGED)
        self._claim_commit(d)
        commit = line.facts["commit"]
        if self.state.drivers[d].look != SEEN:
            raise self.refused("see, but that was not planned")
        if commit in self.seen:
            raise self.refused("see, but it was looked at before")
        self.seen.add(commit)

    def _send(self, line: Line) -> None:
        """Records are sent: some of them may be in the sink from now on."""
        sends = self.state.effect.sends
        if not sends:
            raise self.refused("send, by a pipeline that sends nothing")
        d = self.expect(line, STAGED if sends == FIRST else VERIFIED)
        driver = self.state.drivers[d]
        commit = driver.planned.commit if driver.planned is not None else driver.attempt
        if commit is not None:  # else this partition has no record of the batch
            self.claim("commit", commit, line.facts["commit"])
            if any(each.commit == commit for each in self.state.sink.received):
                raise self.refused("send, but the sink has acknowledged these records before")

    def _sent(self, line: Line) -> None:
        """The sink has all of them, also those of this partition."""
        self._send(line)
        d = self.driver(line)
        unsent = self.state.drivers[d].unsent
        self.take(("send", d, len(unsent)))

    def _returned(self, line: Line) -> None:
        d, commit = self.expect(line, STAGED, RETURNED), line.facts["commit"]
        self._claim_commit(d)
        if not self.guards.lock and self._comes_late(commit):
            self.time_out(d)
        elif commit in self.versions:
            self.advance(self.versions[commit])
        if commit in self.versions:
            self.expect(line, RETURNED)
            return
        if line.facts["fault"] is None and self.arrives_next:  # then it was skipped over that
            self.advance(self.newest + 1)
        if line.facts["fault"] is None and is_due(self.state, self.guards, d, FIRST):
            raise self.refused("returned without a fault, but not all records were sent")
        self.take(("begin", d))
        if self.state.drivers[d].phase == COMMITTING and line.facts["fault"] is None:
            raise self.refused("returned without a fault, but the log has neither it nor a rival")
        self.take(("fail", d))

    def _comes_late(self, commit: object) -> bool:
        """Whether a commit is there only after somebody has read that it is not."""
        version = self.versions.get(commit, -1)
        later = (each for each in self.lines if each.turn > self.line.turn)
        return any(int(each.facts.get("version", version)) < version for each in later)

    def _read_back(self, line: Line) -> None:
        d, said = self.expect(line, RETURNED), line.facts["outcome"]
        self._claim_commit(d)
        self.advance(int(line.facts["version"]))
        self.claim("version", self.newest, line.facts["version"])
        if said == "unknown":
            self.crash(d)
            return
        # Where this leads to a halt, the next line of the driver must be that halt.
        self.state = self.apply(("read_back", d)) or self.state
        stands = self.versions.get(line.facts["commit"], FAR) <= self.newest
        outcomes, driver = ["committed" if stands else "absent"], self.state.drivers[d]
        if driver.code == SUPERSEDED or (driver.phase == DEAD and driver.given_up):
            outcomes = ["superseded", "already committed"]
        if said not in outcomes:
            raise self.refused(f"read_back says {said}; it is {' or '.join(outcomes)}")

    def _project(self, line: Line) -> None:
        d = self.driver(line)
        if not self.state.drivers[d].pending:
            self.expect(line, READY)
        self.take(("project", d, int(line.facts["sequence"])))
        known = projected(self.state.table.offsets)
        self.claim("sequence", known, line.facts["sequence"])
        if not self.state.drivers[d].pending:
            self._hand_over(line)

    def _hand_over(self, line: Line) -> None:
        """A driver goes on without a word while its entry is projected; not before it has sent."""
        following = next(self._mine(), None) if self.state.effect.sends == LAST else None
        if following is not None and following.step in ("send", "sent"):
            return
        if self.phase(line) == VERIFIED:
            self.take(("hand_over", self.driver(line)))

    def _projected_all_the_same(self, line: Line, d: int) -> None:
        """The write of an entry to the offsets table failed, but it may stand: the answer was lost.
        The next one who opens the pipeline tells.
        """
        later = (each for each in self.lines if each.turn > line.turn and each.step == "open")
        said = next((int(each.facts["projected"]) for each in later), 0)
        if said > projected(self.state.table.offsets):
            for step in (("hand_over", d), ("project", d, said)):
                self.state = self.apply(step) or self.state

    def _close(self, line: Line) -> None:
        self._hand_over(line)
        if not self.take(("close", self.expect(line, READY))):
            raise self.refused("close, but the driver has not projected its entry")

    def _halt(self, line: Line) -> None:
        d, code = self.driver(line), str(line.facts["code"])
        driver = self.state.drivers[d]
        if code in PROJECTION_FAILED:
            self._projected_all_the_same(line, d)
            driver = self.state.drivers[d]
        from_the_log = code in FROM_THE_LOG
        if driver.code and driver.code != code and (from_the_log or driver.code in FROM_THE_LOG):
            raise self.refused(f"halt says {code}; the model halts with {driver.code}")
        if from_the_log and driver.code != code and not self._refuses_to_start(d, code):
            self.unexplained[line.number] = f"halt with {code}, which nothing in the log explains"
        self.state = put(self.state, d, type(driver)(given_up=driver.given_up))
