"""What a run would do, as a value; and that a run, ``status`` and maintenance do and say that.

One table of states. Of each state ``assess`` is held to what is written here, and a run, the
status and maintenance are held to ``assess``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config, Kafka, OnDataLoss, Pipeline, Start
from rivermouth.errors import Halt
from rivermouth.kafka.facts import with_truncations
from rivermouth.operate.maintain import maintainable
from rivermouth.operate.pace import State as Shown
from rivermouth.operate.status import PipelineStatus, status
from rivermouth.protocol.assess import Assessment, State, assess
from rivermouth.protocol.commits import CommitRecord, Purpose, entry_of
from rivermouth.protocol.entry import Draft, Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.warehouse.ledger import audit_ledger, read_ledger
from rivermouth.warehouse.ports import LedgerStore
from tests.builders import place, position, replayed, span
from tests.doubles import (
    Driver,
    Killed,
    MemoryKafka,
    World,
    a_pipeline,
    until_done,
)
from tests.memory import MemoryLog

pytestmark = pytest.mark.unit

DAY = 86400.0
P0, P1 = place(0), place(1)


@dataclass(frozen=True)
class Case:
    """A world, and what a run would do in it.

    ``code`` is that of the halt. ``opening`` are purpose and ranges of the entry that a run writes
    first. ``project`` are the sequences that the offsets table lacks.
    """

    world: Callable[[], World]
    state: State = State.RESUMES
    shown: Shown = Shown.OK
    code: str = ""
    opening: tuple[Purpose, tuple[OffsetRange, ...]] | None = None
    starts: Position = field(default_factory=lambda: position(6, 4))
    lost: tuple[OffsetRange, ...] = ()
    discovered: tuple[OffsetRange, ...] = ()
    project: tuple[int, ...] = ()
    behind: int = 0
    pipeline: Pipeline = field(default_factory=a_pipeline)
    quiet: bool = False
    """Whether maintenance leaves the table alone, for the next run to write first."""
    only_folder: bool = False
    """Whether it needs a log that tells the ``txn``."""
    only_audited: bool = False
    """Whether only an audit of the whole log tells; a run and the status read its end."""


def halts(world: Callable[[], World], code: str, **more: Any) -> Case:
    return Case(world, State.HALTS, Shown.BLOCKED, code, starts=Position(), **more)


def new() -> World:
    return World(ends={P0: 6, P1: 4})


def read() -> World:
    """Entry 1 (newly discovered partitions) and 2; all is read."""
    world = new()
    until_done(world)
    return world


def changed(change: Callable[[World], object]) -> Callable[[], World]:
    """A world in which all was read, and then something happened."""

    def made() -> World:
        world = read()
        change(world)
        return world

    return made


def clean_up(world: World) -> None:
    """Log clean-up takes all but one commit of somebody else."""
    world.did("OPTIMIZE")
    world.log.first_version = len(world.commits) - 1


def lose_the_offsets_table(world: World) -> None:
    world.projected.clear()
    world.offsets.txns.clear()


def clean_up_without_offsets_table(world: World) -> None:
    clean_up(world)
    lose_the_offsets_table(world)


def clean_up_with_an_old_offsets_table(world: World) -> None:
    clean_up(world)
    world.projected.pop()
    world.offsets.txns["orders"] = 1


def drop_and_create(world: World) -> None:
    world.log.table_id, world.rows, world.stands = "table-2", [], set()
    world.commits = [CommitRecord(0, 0, "CREATE TABLE", {}, {}, None)]


def tear(world: World) -> None:
    """Somebody restores the table during a batch."""
    world.ends[P0] = 9
    driver = Driver(world).open()
    world.restore(1)
    with pytest.raises(Halt):
        driver.batch()


def forget_a_rollback(world: World) -> None:
    """A start halts at a RESTORE, and log clean-up takes it."""
    world.restore(1)
    with pytest.raises(Halt):
        Driver(world).open()
    clean_up(world)


def restore_and_recreate_topic(world: World) -> None:
    world.restore(1)
    world.topics = {"t": "topic-2"}


def accept_a_restore(world: World) -> None:
    world.restore(1)
    Driver(world).ingest.resume("restore")


def die(world: World) -> None:
    """A driver commits entry 3 and does not come to project it."""
    world.ends[P0] = 9
    with pytest.raises(Killed):
        Driver(world).open().batch(crash="before projection")


def add_a_partition_that_is_cut(world: World) -> None:
    world.ends[place(2)], world.low[place(2)] = 5, 4


def lose(world: World) -> None:
    world.ends[P0], world.low[P0] = 20, 9


HERE = (span(6, 6), span(4, 4, 1))
BORN = (span(0, 0), span(0, 0, 1))
RECORDING = a_pipeline(on_data_loss=OnDataLoss.RECORD)
LATEST = a_pipeline(start=Start(edge="latest"))

CASES = {
    "new": Case(
        new,
        State.NEW,
        Shown.NEW,
        opening=(Purpose.DISCOVERY, BORN),
        starts=position(0, 0),
        discovered=BORN,
        behind=10,
    ),
    "new, from the end of the topic on": Case(
        new,
        State.NEW,
        Shown.NEW,
        opening=(Purpose.DISCOVERY, HERE),
        discovered=HERE,
        pipeline=LATEST,
    ),
    "caught up": Case(read),
    "behind": Case(changed(lambda world: world.ends.update({P0: 9})), behind=3),
    "a partition was added": Case(
        changed(lambda world: world.ends.update({place(2): 5})),
        opening=(Purpose.DISCOVERY, (span(0, 0, 2),)),
        starts=position(6, 4, 0),
        discovered=(span(0, 0, 2),),
        behind=5,
    ),
    "a partition was added and cut, and the loss is to be recorded": Case(
        changed(add_a_partition_that_is_cut),
        opening=(Purpose.LOSS, (span(0, 4, 2),)),
        starts=position(6, 4, 4),
        lost=(span(0, 4, 2),),
        behind=1,
        pipeline=RECORDING,
    ),
    "a partition was added and cut": halts(changed(add_a_partition_that_is_cut), "RM406"),
    "a broker that tells topic ids no longer": Case(
        changed(lambda world: vars(world).update(topics={"t": "AAAAAAAAAAAAAAAAAAAAAA"}))
    ),
    "quiet for a third of the retention": Case(
        changed(lambda world: vars(world).update(now=10.1 * DAY)),
        opening=(Purpose.HEARTBEAT, HERE),
        quiet=True,
    ),
    "quiet for less": Case(changed(lambda world: vars(world).update(now=9.9 * DAY))),
    "a driver died before it projected": Case(changed(die), starts=position(9, 4), project=(3,)),
    "the offsets table is gone": Case(changed(lose_the_offsets_table), project=(1, 2)),
    "clean-up took all entries": Case(
        changed(clean_up), opening=(Purpose.HEARTBEAT, HERE), quiet=True
    ),
    "an accepted RESTORE": Case(changed(accept_a_restore), starts=position(0, 0), behind=10),
    "retention passed the position, and the loss is to be recorded": Case(
        changed(lose),
        opening=(Purpose.LOSS, (span(6, 9),)),
        starts=position(9, 4),
        lost=(span(6, 9),),
        behind=11,
        pipeline=RECORDING,
    ),
    "retention passed the position": halts(changed(lose), "RM406"),
    "a topic created again": halts(
        changed(lambda world: vars(world).update(topics={"t": "topic-2"})), "RM404"
    ),
    "another cluster": halts(changed(lambda world: vars(world).update(cluster="2")), "RM405"),
    "a partition is gone": halts(changed(lambda world: world.ends.pop(P1)), "RM407"),
    "the log ends before the position": halts(
        changed(lambda world: world.ends.update({P0: 5})), "RM416"
    ),
    "the log was truncated by an unclean election, and has grown since": halts(
        changed(lambda world: world.cut(P0, 3, grown=10)), "RM416"
    ),
    "a setting that gives identity was changed": halts(
        read, "RM408", pipeline=a_pipeline(keys=("id",))
    ),
    "a renamed pipeline": halts(
        read, "RM408", quiet=True, pipeline=a_pipeline().model_copy(update={"name": "renamed"})
    ),
    "another table": halts(
        changed(lambda world: vars(world.log).update(table_id="table-2")), "RM409"
    ),
    "a commit is missing": halts(
        changed(lambda world: world.commits.pop(1)), "RM410", only_audited=True
    ),
    "written over a rollback": halts(changed(tear), "RM410"),
    "a RESTORE that nobody has answered": halts(changed(lambda world: world.restore(1)), "RM411"),
    "a RESTORE to a point in time": halts(
        changed(lambda world: world.did("RESTORE", version=None, timestamp="noon")), "RM411"
    ),
    "a TRUNCATE that nobody has answered": halts(changed(World.truncate), "RM411"),
    "a RESTORE, and another topic of that name": halts(
        changed(restore_and_recreate_topic),
        "RM411",
    ),
    "clean-up took all entries, and the offsets table is gone": halts(
        changed(clean_up_without_offsets_table), "RM412", only_folder=True
    ),
    "clean-up took all entries, and the offsets table lacks the newest": halts(
        changed(clean_up_with_an_old_offsets_table), "RM412", only_folder=True
    ),
    "clean-up took a rollback": halts(changed(forget_a_rollback), "RM412"),
    "dropped and created again": halts(changed(drop_and_create), "RM415"),
    "the end of the log is lost": halts(changed(lambda world: world.commits.pop()), "RM415"),
}


def cases(wanted: Callable[[Case], bool] = lambda _: True) -> pytest.MarkDecorator:
    """The cases that are wanted, each with a table in a folder and with one in a catalog."""
    params = [
        pytest.param(catalog, case, id=f"{name}, in a {'catalog' if catalog else 'folder'}")
        for name, case in CASES.items()
        for catalog in (False, True)
        if wanted(case) and not (catalog and case.only_folder)
    ]
    return pytest.mark.parametrize(("catalog", "case"), params)


@pytest.fixture
def world(catalog: bool, case: Case, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(World, "catalog", catalog)
    return case.world()


def store_of(world: World) -> LedgerStore:
    return LedgerStore(MemoryLog(world.log), world.offsets)


def facts(case: Case, world: World, newest: Entry | None) -> KafkaFacts:
    kafka = MemoryKafka(world)
    return with_truncations(kafka, kafka.facts(case.pipeline.source.topics), newest)


def assessed(case: Case, world: World) -> Assessment:
    ledger = audit_ledger(store_of(world), case.pipeline)
    return assess(ledger, facts(case, world, ledger.newest), case.pipeline, world.now)


def said(halt: Halt | None) -> str:
    return str(halt) if halt is not None else ""


def without_ledger(found: Assessment) -> Assessment:
    """The same but for what was read, and with a halt that compares by its text."""
    nothing = LedgerSnapshot(replayed([]))
    return replace(found, ledger=nothing, halt=None)


def written(world: World) -> tuple[int, int, dict[str, int]]:
    """How much there is of everything that a run may write, but for its notes."""
    return len(world.commits), len(world.projected), dict(world.offsets.txns)


@cases()
def test_the_assessment_is(case: Case, world: World) -> None:
    before = written(world)
    found = assessed(case, world)
    assert found.halt is None or found.halt.code == case.code, said(found.halt)
    assert (found.halt is None) == (case.code == "")
    opening = found.opening
    told = (opening.purpose, opening.draft.ranges) if opening is not None else None
    assert told == case.opening
    project = tuple(each.entry.sequence for each in found.to_project)
    assert project == case.project
    assert found.state is case.state
    assert replace(found, opening=None, to_project=(), halt=None) == Assessment(
        ledger=found.ledger,
        starts=case.starts,
        lost=case.lost,
        discovered=case.discovered,
        behind=case.behind,
    )
    assert written(world) == before, "nothing was written"


@cases(lambda case: not case.only_audited)
def test_the_end_of_the_log_tells_the_same(case: Case, world: World) -> None:
    whole = assessed(case, world)
    ledger = read_ledger(store_of(world), case.pipeline)
    recent = assess(ledger, facts(case, world, ledger.newest), case.pipeline, world.now)
    assert without_ledger(recent) == without_ledger(whole)
    assert said(recent.halt) == said(whole.halt)
    assert (ledger.newest, ledger.txn) == (whole.ledger.newest, whole.ledger.txn)


@cases()
def test_a_run_does_just_that(case: Case, world: World) -> None:
    found = assessed(case, world)
    driver, before = Driver(world, case.pipeline), written(world)
    if found.halt is not None:
        with pytest.raises(type(found.halt)) as caught:
            driver.open(audit=case.only_audited)
        assert (str(caught.value), caught.value.code) == (str(found.halt), case.code)
        assert written(world) == before, "it halts before it writes"
        return
    driver.open()
    assert driver.stands == found.starts
    entries = [entry_of(each, case.pipeline.name) for each in world.commits[before[0] :]]
    drafts = [found.opening.draft] if found.opening is not None else []
    assert [draft_of(each) for each in entries if each is not None] == drafts
    assert len(entries) == len(drafts), "and it made no other commit"
    sequences = [each.entry.sequence for each in world.projected[before[1] :]]
    lacking = [*(each.entry for each in found.to_project), *drafts]
    assert sequences == [each.sequence for each in lacking if each.ranges or not World.catalog]
    told = driver.heard.opening
    assert (told.position, told.behind, told.lost) == (found.starts, found.behind, found.lost)
    assert told.projected == len(found.to_project)
    assert told.recovered is (found.ledger.history.recovered is not None)


def draft_of(entry: Entry) -> Draft:
    """The part of an entry that was decided before its commit."""
    return Draft(**{name: getattr(entry, name) for name in Draft.__dataclass_fields__})


@cases(lambda case: not case.code)
def test_what_a_run_owed_it_owes_no_more_once_it_has_begun(case: Case, world: World) -> None:
    first = assessed(case, world)
    Driver(world, case.pipeline).open()
    world.now = min(world.now, 1 * DAY)  # the commits of this world are all of 1970
    again = assessed(case, world)
    assert again.halt is None
    assert (again.starts, again.behind) == (first.starts, first.behind)
    assert (again.state, again.opening, again.lost) == (State.RESUMES, None, ())
    assert (again.discovered, again.to_project) == ((), ())


@cases(lambda case: not case.only_audited)
def test_status_says_just_that(case: Case, world: World, tmp_path: Path) -> None:
    found, before = assessed(case, world), written(world)
    shown = shown_of(case, world, tmp_path)
    assert shown.state is case.shown
    assert (shown.reason or "") == said(found.halt)
    assert written(world) == before, "it only looks"
    newest = found.ledger.newest
    assert shown.position == (newest.position.as_nested() if newest is not None else None)
    if found.halt is not None:
        assert shown.lag_messages is None
        return
    assert shown.lag_messages == found.behind
    assert shown.held_back == found.held_back
    assert shown.sequence == (newest.sequence if newest is not None else None)


def shown_of(case: Case, world: World, folder: Path) -> PipelineStatus:
    config = Config(
        version=1,
        kafka=Kafka(options={"bootstrap.servers": "k:1"}),
        warehouse=folder,
        pipelines={case.pipeline.name: case.pipeline},
        path=folder / "rivermouth.yml",
    )
    [shown] = status(
        config, MemoryKafka(world), lambda: world.now, stores=lambda _: store_of(world)
    ).pipelines
    return shown


@cases(lambda case: not case.only_audited)
def test_maintenance_halts_where_a_run_would_halt_without_kafka(case: Case, world: World) -> None:
    ledger = read_ledger(store_of(world), case.pipeline)
    halt = assess(ledger, None, case.pipeline, world.now).halt
    ledgers = [(case.pipeline, store_of(world))]
    if halt is None:
        assert bool(maintainable(ledgers, world.now).quiet) is case.quiet
        return
    with pytest.raises(type(halt)) as caught:
        maintainable(ledgers, world.now)
    assert (str(caught.value), caught.value.code) == (str(halt), case.code)
    assert said(assessed(case, world).halt) == str(halt), "Kafka does not hide it"
