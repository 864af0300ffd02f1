"""A campaign: rounds of records, faults, a driver, its death; and the proof, again and again."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.faults.campaign.endings import finish
from tests.faults.campaign.faults import strike
from tests.faults.campaign.kills import armed, failpoints
from tests.faults.campaign.operating import CODES, REFUSED, Order, carry_out, is_accepted
from tests.faults.campaign.paths import CUTS, Paths
from tests.faults.campaign.plan import (
    AFTER_IT,
    PIPELINES,
    TABLES,
    UNDOING,
    Fault,
    Kill,
    Operation,
    Round,
    ending_of,
    round_of,
)
from tests.faults.campaign.process import DriverProcess
from tests.faults.campaign.shops import Shops
from tests.faults.campaign.standby import PATIENCE_S, Standby
from tests.faults.campaign.tally import Tally, Violated
from tests.faults.campaign.world import World

PER_ROUND = {"events": 600, "accounts": 500}
ROUNDS_OF_A_WORLD = 24
CHECK_EVERY = 8
LOCKED = "RM413"


class Campaign:
    """Worlds, one after another, in ``folder``; ``tally`` counts.

    ``preloaded``: the library that kills at system calls (see ``calls``); None: at a moment.
    ``aims``: see ``plan.round_of``.
    """

    def __init__(
        self, folder: Path, tally: Tally, preloaded: Path | None, aims: Sequence[str] = ()
    ) -> None:
        self._aims = aims
        self._preloaded = preloaded
        self._folder = folder
        self._tally = tally

    def world(self, rounds: int, until: float) -> None:
        """At most ``rounds`` rounds in a new world, until a moment; its proof, and its end."""
        first = self._tally.rounds
        folder = self._folder / f"world-{first}"
        began = time.monotonic()
        with World(folder) as self._world:
            tables = {name: self._world.table(name) for name in PIPELINES}
            self._paths = Paths(self._world.trace, tables)
            self._standby = Standby(self._world, self._preloaded)
            self._shops = Shops(self._world)
            try:
                self._rounds(min(rounds, ROUNDS_OF_A_WORLD), until)
                self._end(ending_of(self._tally.seed, first))
                self._conform()
                self._tally.conformed += len(PIPELINES)
            except Violated as violation:
                self._tally.violations.append(f"{folder}: {violation}")
            finally:
                self._standby.end()
        self._tally.seconds += time.monotonic() - began
        if not self._tally.violations:
            self._world.remove()

    def _rounds(self, rounds: int, until: float) -> None:
        for done in range(1, rounds + 1):
            self._round(round_of(self._tally.seed, self._tally.rounds, self._aims))
            self._tally.rounds += 1
            last = done == rounds or time.monotonic() > until
            if last or done % CHECK_EVERY == 0:
                self._prove()
            if last:
                self._judge(whole=True)
                return

    def _round(self, plan: Round) -> None:
        began = time.monotonic()
        dice = random.Random(f"{self._tally.seed} {plan.number} deeds")
        self._world.produce(dice.randrange(1 << 30), **PER_ROUND)
        done = self._shops.move(plan.number, self._tally)
        expected: dict[str, str] = {}
        for fault in plan.faults:
            if fault.table in expected:
                continue  # what was undone is accepted before anything else happens to it
            if fault.name in CUTS:
                self._conform()
            code = strike(self._world, fault, dice)
            if code is None:
                continue
            self._tally.faults[fault.name] += 1
            if code:
                expected[fault.table] = code
                self._accept(fault.table, fault.name, code)
        done += [each.name for each in plan.faults]
        if plan.operation is not None and self._operate(plan.operation, plan.number):
            done.append(plan.operation.name)
        told = self._killed_run(plan)
        names = ", ".join(done) or "no fault"
        seconds = time.monotonic() - began
        print(f"{plan.number:5} {told:34.34} {names:30.30} {seconds:5.1f} s", flush=True)

    def _accept(self, table: str, name: str, code: str) -> None:
        """The next start must halt; then an operator accepts, and it goes on."""
        answer = self._standby.order("run", PIPELINES)
        if answer["codes"].get(table) != code:
            raise Violated(f"{name} of {table}: expected {code}, found {answer}")
        self._tally.halts[code] += 1
        self._clean(answer, but=(table,))
        accept = "restore" if name == UNDOING[0] else "reset"
        self._clean(self._standby.order("resume", [table], accept=accept))

    def _operate(self, asked: Operation, number: int) -> bool:
        """Something is done on purpose; somebody accepts it, is killed, accepts it again, once."""
        dice = random.Random(f"{self._tally.seed} {number} {asked.name}")
        order = carry_out(self._world, asked, dice)
        if order is None:
            return False
        code = CODES[asked.name]
        if code:
            answer = self._standby.order("run", PIPELINES)
            if answer["codes"].get(asked.table) != code:
                raise Violated(f"{asked}: expected {code}, found {answer}")
            self._tally.halts[code] += 1
            self._clean(answer, but=(asked.table,))
        self._accept_once(asked, order)
        self._tally.faults[asked.name] += 1
        self._prove(proof=True)
        return True

    def _accept_once(self, asked: Operation, order: Order) -> None:
        """Accept it; if that is killed, accept it again, which is refused if it stood already."""
        driver = self._standby.next()
        fatal = f"{asked.point}=kill" if asked.point else ""
        self._standby.give(driver, order.do, [asked.table], points=fatal, **order.more)
        answer = driver.answer(PATIENCE_S)
        if answer is not None:
            self._clean(answer)
            return
        self._died(driver, Kill("accepting", asked.point))
        accepted = is_accepted(self._world, asked.table, order)
        if accepted != (asked.point in AFTER_IT):
            raise Violated(f"{asked}: killed there, the log has it: {accepted}")
        again = self._standby.order(order.do, [asked.table], **order.more)
        if not accepted:
            self._clean(again)
        elif again["codes"] != {asked.table: REFUSED}:
            raise Violated(f"{asked}: accepted twice, {again}")
        else:
            self._tally.halts[REFUSED] += 1

    def _killed_run(self, plan: Round) -> str:
        driver, kill = self._standby.next(), plan.kill
        if kill.kind == "call" and self._preloaded is None:
            kill = Kill("time", "1.5")
        driver.await_session()
        look = armed(kill, driver, self._world)
        self._standby.give(driver, "run", PIPELINES, points=failpoints(kill))
        answer = driver.answer(PATIENCE_S, look)
        if not driver.alive:  # Python may have had the time to say that its JVM is gone
            return self._died(driver, kill)
        if kill.kind == "freeze" and answer is None:
            return self._overtaken(driver)
        if answer is None:
            raise Violated(f"no answer for {PATIENCE_S} s under {kill}")
        self._tally.survived += 1
        driver.calls.disarm()
        self._clean(answer)
        return f"survived {kill.kind} {kill.detail}"

    def _died(self, driver: DriverProcess, kill: Kill) -> str:
        """Count the death; what is left of the driver ends now, an orphan a little later."""
        if kill.kind == "orphan":
            time.sleep(0.2)
        detail = "" if kill.kind in ("time", "orphan") else kill.detail.partition("=")[0]
        self._tally.kills[f"{kill.kind} {detail}".strip()] += 1
        self._standby.lose(driver)
        return f"killed {kill.kind} {kill.detail}"

    def _overtaken(self, zombie: DriverProcess) -> str:
        """A frozen driver keeps its lock: a successor must halt, and the zombie then goes on."""
        successor = self._standby.besides(zombie)
        answer = self._standby.order("run", PIPELINES, by=successor)
        strange = {*answer["codes"].values()} - {"", LOCKED}
        if strange or LOCKED not in answer["codes"].values():
            raise Violated(f"beside a frozen driver: {answer}")
        self._tally.halts[LOCKED] += 1
        zombie.signal(signal.SIGCONT)
        woken = zombie.answer(PATIENCE_S)
        if woken is None:
            raise Violated("a woken driver did not come to an end")
        self._clean(woken)
        self._tally.faults["frozen and overtaken"] += 1
        return "frozen, overtaken, woken"

    def _prove(self, *, proof: bool = False) -> None:
        """An undisturbed run comes to the end of the topics, and everything is there, once."""
        self._clean(self._standby.order("run", PIPELINES))
        self._judge(whole=False, proof=proof)

    def _judge(self, *, whole: bool, proof: bool = False) -> None:
        records, wrong = self._world.judge(whole=whole, proof=proof)
        if wrong:
            raise Violated("; ".join(wrong[:20]))
        if whole:
            self._tally.records += records

    def _conform(self) -> None:
        """What was traced since this was last asked is a path of the model."""
        wrong = self._paths.check()
        if wrong:
            raise Violated("; ".join(wrong[:20]))

    def _end(self, ending: Fault) -> None:
        """One topic is struck: its pipeline must stop before it writes, and the other go on."""
        dice = random.Random(f"{self._tally.seed} {self._tally.rounds} end")
        [other] = {*TABLES} - {ending.table}
        self._world.produce(dice.randrange(1 << 30), **{**PER_ROUND, ending.table: 0})
        code = finish(self._world, ending, dice)
        before = {name: self._world.written(name) for name in TABLES}
        answer = self._standby.order("run", PIPELINES)
        told = f"{ending.name}, of {ending.table}"
        if answer["codes"].get(ending.table) != code:
            raise Violated(f"{told}: expected {code}, found {answer}")
        self._clean(answer, but=(ending.table,))
        if self._world.written(ending.table) != before[ending.table]:
            raise Violated(f"{told}: stopped with {code}, but only after it had written")
        if self._world.written(other) == before[other]:
            raise Violated(f"{told}: {other} did not go on")
        self._tally.faults[ending.name] += 1
        self._tally.halts[code] += 1
        print(f"  end {told}: {code}", flush=True)

    def _clean(self, answer: dict[str, Any], but: Sequence[str] = ()) -> None:
        bad = {name: code for name, code in answer["codes"].items() if code and name not in but}
        if bad:
            raise Violated(f"a halt or failure that nobody expected: {answer['errors']}")
