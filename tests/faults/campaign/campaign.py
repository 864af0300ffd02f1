"""A campaign: rounds of records, faults, a driver, its death; and the proof, again and again."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.faults.campaign import endings, faults, operating
from tests.faults.campaign.forms import OF_WORLDS
from tests.faults.campaign.kills import LOSSES, armed, failpoints
from tests.faults.campaign.operating import REFUSED, Order
from tests.faults.campaign.paths import CUTS, Paths
from tests.faults.campaign.plan import (
    AFTER_IT,
    UNDOING,
    Kill,
    Operation,
    Round,
    clustered,
    ending_of,
    round_of,
    stored,
)
from tests.faults.campaign.process import DriverProcess
from tests.faults.campaign.shops import Shops
from tests.faults.campaign.standby import PATIENCE_S, Standby, clean
from tests.faults.campaign.stores import GAVE_UP, Beyond
from tests.faults.campaign.tally import Tally, Violated
from tests.faults.campaign.ways import CommitWays, alter, altering
from tests.faults.campaign.world import PER_ROUND, PIPELINES, TABLES, World, new_world
from tests.faults.model.configurations import FILES, OBJECTS

ROUNDS_OF_A_WORLD = 24
CHECK_EVERY = 8
LOCKED, FAILED = "RM413", "RM503"


def play(
    folder: Path,
    tally: Tally,
    preloaded: Path | None,
    rounds: int,
    aims: Sequence[str] = (),
    beyond: Beyond | None = None,
) -> None:
    """At most ``rounds`` rounds in a new world, its proof, and its end; ``tally`` counts.

    ``preloaded``: the library that kills at system calls (see ``calls``); None: at a moment.
    ``aims``: see ``plan.round_of``. ``beyond``: what of it is beyond this machine. A world that
    went wrong is kept.
    """
    first, began = tally.rounds, time.monotonic()
    place = folder / f"world-{first}"
    forms = OF_WORLDS[first // ROUNDS_OF_A_WORLD % len(OF_WORLDS)]
    print(", ".join(f"{topic} in {form}" for topic, form in forms.items()), flush=True)
    with (
        new_world(place, forms, beyond or Beyond.NOTHING) as world,
        closing(Standby(world, preloaded)) as standby,
    ):
        campaign = Campaign(world, standby, tally, aims)
        try:
            campaign.rounds(min(rounds, ROUNDS_OF_A_WORLD))
            endings.end(world, standby, tally, *ending_of(tally.seed, first))
            campaign.conform()
            tally.conformed += len(PIPELINES)
            tally.forms.update(f"{topic} in {form}" for topic, form in forms.items())
        except Violated as violation:
            tally.violations.append(f"{place}: {violation}")
    tally.seconds += time.monotonic() - began
    if not tally.violations:
        shutil.rmtree(place, ignore_errors=True)


class Campaign:
    """The rounds of one world."""

    def __init__(self, world: World, standby: Standby, tally: Tally, aims: Sequence[str]) -> None:
        tables = {name: world.table(name) for name in PIPELINES}
        self._world, self._standby, self._tally, self._aims = world, standby, tally, aims
        guards = FILES if world.store is None else OBJECTS
        self._paths = Paths(world.trace, tables, guards=guards)
        self._commit_ways = CommitWays(world.trace, tables)
        self._shops = Shops(world)

    def rounds(self, rounds: int) -> None:
        """So many, with their proofs."""
        for done in range(1, rounds + 1):
            plan = round_of(self._tally.seed, self._tally.rounds, self._aims)
            self._round(self._planned(plan))
            self._tally.rounds += 1
            if done == rounds or done % CHECK_EVERY == 0:
                self._prove()
        self._judge(whole=True)

    def _planned(self, plan: Round) -> Round:
        store = self._world.store
        if store is None:
            return plan
        found = stored(plan, self._tally.seed)
        return found if store.cluster is None else clustered(found, self._tally.seed)

    def conform(self) -> None:
        """What was traced since this was last asked is a path of the model."""
        self._tally.commits += self._commit_ways.count()
        _raise(self._paths.check())

    def _round(self, plan: Round) -> None:
        began = time.monotonic()
        dice = random.Random(f"{self._tally.seed} {plan.number} deeds")
        self._world.writer.fill(dice.randrange(1 << 30), PER_ROUND)
        self._world.choose_ways(plan.ways.by_spark, small=plan.ways.small)
        for name in TABLES:
            if self._world.store is None:
                altered = alter(self._world.table(name), asks=name in plan.ways.asks)
                self._tally.faults["way changed"] += altered
        done = self._shops.move(plan.number, self._tally)
        undone: set[str] = set()
        for name, table in plan.faults:
            if table in undone:
                continue  # what was undone is accepted before anything else happens to it
            if name in CUTS:
                self.conform()
            code = faults.strike(self._world, name, table, dice)
            if code is None:
                continue
            self._tally.faults[name] += 1
            if code:
                undone.add(table)
                self._must_halt(table, code, name)
                accept = "restore" if name == UNDOING[0] else "reset"
                clean(self._standby.order("resume", [table], accept=accept))
        done += [name for name, _ in plan.faults]
        if plan.operation is not None and self._operate(plan.operation, plan.number):
            done.append(plan.operation.name)
            # The proof has read all: without more records the driver would not come to its kill.
            self._world.writer.fill(dice.randrange(1 << 30), PER_ROUND)
        with self._troubled(dice):
            outcome = self._both(plan) if plan.two else self._killed_run(plan)
            done += [self._one_more(each, dice) for each in plan.more]
        names = ", ".join(done) or "no fault"
        seconds = time.monotonic() - began
        print(f"{plan.number:5} {outcome:34.34} {names:30.30} {seconds:5.1f} s", flush=True)

    def _must_halt(self, table: str, code: str, why: str) -> None:
        self._standby.must_halt(table, code, why)
        self._tally.halts[code] += 1

    def _operate(self, asked: Operation, number: int) -> bool:
        """Something is done on purpose; somebody accepts it, is killed, accepts it again, once."""
        dice = random.Random(f"{self._tally.seed} {number} {asked.name}")
        order = operating.carry_out(self._world, asked.name, asked.table, dice)
        if order is None:
            return False
        _, code = operating.DEEDS[asked.name]
        if code:
            self._must_halt(asked.table, code, asked.name)
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
            clean(answer)
            return
        self._died(driver, Kill("accepting", asked.point))
        accepted = operating.is_accepted(self._world, asked.table, order)
        if accepted != (asked.point in AFTER_IT):
            raise Violated(f"{asked}: killed there, the log has it: {accepted}")
        again = self._standby.order(order.do, [asked.table], **order.more)
        if not accepted:
            clean(again)
        elif again["codes"] != {asked.table: REFUSED}:
            raise Violated(f"{asked}: accepted twice, {again}")
        else:
            self._tally.halts[REFUSED] += 1

    def _one_more(self, kill: Kill, dice: random.Random) -> str:
        """More records, and one more death."""
        self._world.writer.fill(dice.randrange(1 << 30), PER_ROUND)
        if kill.kind != "guest":
            return self._killed(self._standby.next(), kill)
        with self._standby.guest() as driver:
            return self._killed(driver, kill)

    def _killed_run(self, plan: Round) -> str:
        driver, kill = self._standby.next(), plan.kill
        if kill.kind == "call" and not driver.counts_calls:
            kill = Kill("time", "1.5")
        return self._killed(driver, kill, plan.ways.amid)

    def _killed(self, driver: DriverProcess, kill: Kill, amid: Sequence[str] = ()) -> str:
        driver.await_session()
        look = armed(kill, driver, self._world)
        look = altering(map(self._world.table, amid), look)
        self._standby.give(driver, "run", PIPELINES, points=failpoints(kill))
        answer = driver.answer(PATIENCE_S, look)
        if not driver.alive:  # Python may have had the time to say that its JVM is gone
            return self._died(driver, kill)
        if kill.kind == "freeze" and answer is None:
            return self._overtaken(driver)
        if answer is None:
            raise Violated(f"no answer for {PATIENCE_S} s under {kill}")
        if kill.kind in LOSSES:
            lost = self._world.lost
            self._tally.kills[kill.kind] += lost
            self._world.lost = 0
            clean(answer, but=self._gave_up(answer))
            return f"lost {lost} {kill.kind} {kill.detail}"
        task = driver.calls.struck()
        driver.calls.disarm()
        clean(answer, but=self._gave_up(answer) or (_failed(answer) if task else ()))
        if task:
            self._tally.kills[f"task {kill.detail}"] += 1
            return f"killed task {kill.detail}"
        self._tally.survived += 1
        return f"survived {kill.kind} {kill.detail}"

    @contextmanager
    def _troubled(self, dice: random.Random) -> Iterator[None]:
        """What the network of an object store does within the block."""
        store = self._world.store
        if store is None:
            yield
            return
        before = store.proxy.set(store.trouble(dice))
        try:
            yield
        finally:
            self._tally.answers += (store.proxy.set() - before).faults

    def _gave_up(self, answer: dict[str, Any]) -> list[str]:
        """The pipelines that an object store has stopped; none where there is none."""
        if self._world.store is None:
            return []
        found = [name for name, code in answer["codes"].items() if code in GAVE_UP]
        self._tally.halts.update(answer["codes"][name] for name in found)
        return found

    def _both(self, plan: Round) -> str:
        """Two drivers work at once, as on two machines; each stops, or comes to its end."""
        first = self._standby.next()
        second = self._standby.besides(first)
        elsewhere = str(self._world.folder / "elsewhere")
        scratch = {} if plan.number % 20 == 9 else {"scratch": elsewhere}
        second.await_session()
        self._standby.give(first, "run", PIPELINES)
        self._standby.give(second, "run", PIPELINES, **scratch)
        for each in (first, second):
            self._ends(each, "one of two drivers")
        self._tally.faults["two drivers"] += 1
        return "two drivers at once"

    def _ends(self, driver: DriverProcess, what: str) -> None:
        """A driver that was given an order comes to its end, or is stopped by an object store."""
        answer = driver.answer(PATIENCE_S)
        if answer is None:
            raise Violated(f"{what} did not come to an end")
        clean(answer, but=self._gave_up(answer))

    def _died(self, driver: DriverProcess, kill: Kill) -> str:
        """Count the death; what is left of the driver ends now, an orphan a little later."""
        if kill.kind == "orphan":
            time.sleep(0.2)
        detail = "" if kill.kind in ("time", "orphan") else kill.detail.partition("=")[0]
        self._tally.kills[f"{kill.kind} {detail}".strip()] += 1
        self._standby.lose(driver)
        return f"killed {kill.kind} {kill.detail}"

    def _overtaken(self, zombie: DriverProcess) -> str:
        """A frozen driver keeps its lock: a successor must halt, and the zombie then goes on.

        An object store has no lock: the successor goes on, and the zombie's commit must fail.
        """
        successor = self._standby.besides(zombie)
        answer = self._standby.order("run", PIPELINES, by=successor)
        if self._world.store is not None:
            clean(answer, but=self._gave_up(answer))
            zombie.signal(signal.SIGCONT)
            self._ends(zombie, "a woken driver")
            self._tally.faults["frozen and overtaken"] += 1
            return "frozen, overtaken, woken"
        strange = {*answer["codes"].values()} - {"", LOCKED}
        if strange or LOCKED not in answer["codes"].values():
            raise Violated(f"beside a frozen driver: {answer}")
        self._tally.halts[LOCKED] += 1
        zombie.signal(signal.SIGCONT)
        self._ends(zombie, "a woken driver")
        self._tally.faults["frozen and overtaken"] += 1
        return "frozen, overtaken, woken"

    def _prove(self, *, proof: bool = False) -> None:
        """An undisturbed run comes to the end of the topics, and everything is there, once.

        The ways change after the first batch.
        """
        alters = altering(map(self._world.table, TABLES if self._world.store is None else ()))
        clean(self._standby.order("run", PIPELINES, meanwhile=alters))
        self._judge(whole=False, proof=proof)

    def _judge(self, *, whole: bool, proof: bool = False) -> None:
        records, wrong = self._world.judge(whole=whole, proof=proof)
        _raise(wrong)
        if whole:
            self._tally.records += records


def _raise(wrong: Sequence[str]) -> None:
    if wrong:
        raise Violated("; ".join(wrong[:20]))


def _failed(answer: dict[str, Any]) -> list[str]:
    """The pipelines whose batch failed, as one does whose task has died."""
    return [name for name, code in answer["codes"].items() if code == FAILED]
