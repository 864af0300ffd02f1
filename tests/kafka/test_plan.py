"""``plan`` says what ``run`` then does: over lakes to which things happen, drawn from a seed."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import rivermouth
from rivermouth.config import load
from rivermouth.errors import RivermouthError
from rivermouth.local.broker import Broker
from rivermouth.operate.plan import PipelinePlan, plan
from rivermouth.replay.ranges import merged
from tests.lake import Lake, append_pipeline, bid
from tests.pages import page, snippets
from tests.waiting import add_partition, delete_records

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

NAME, TABLE = "p", "bronze.planned"
STEPS = 8


class Planned:
    """A lake with one pipeline; each deed happens to it, or to its topic."""

    def __init__(self, lake: Lake, dice: random.Random) -> None:
        self.lake, self._dice = lake, dice
        self.topic = f"plan-{lake.folder.name}"
        self.columns = "auction BIGINT"
        self.partitions = 2
        self.produced = [0, 0]
        lake.topic(self.topic, self.partitions)
        self.configured()

    def configured(self) -> None:
        """The file says now."""
        source = {"on_data_loss": "record", "max_offsets_per_trigger": 7}
        made = append_pipeline(self.topic, **source)
        made |= {"schema": self.columns, "target": {"table": TABLE}}
        self.lake.configure(p=made)

    def arrives(self) -> None:
        """Records arrive, some of which are bad."""
        for _ in range(self._dice.randrange(1, 20)):
            place = self._dice.randrange(self.partitions)
            value = b"{" if self._dice.random() < 0.2 else bid(self.produced[place])
            self.lake.produce(self.topic, [(None, value, place)])
            self.produced[place] += 1

    def widens(self) -> None:
        """The topic gets a partition."""
        self.partitions = add_partition(self.lake.servers, self.topic)
        self.produced += [0] * (self.partitions - len(self.produced))

    def expires(self) -> None:
        """Retention takes records that may not be read yet."""
        self.arrives()
        delete_records(self.lake.servers, self.topic, max(0, self.produced[0] - 1))

    def grows(self) -> None:
        """The file gets a column."""
        if self._there():
            number = self.columns.count(",") + 1
            self.columns += f", more{number} BIGINT"
            self.configured()

    def compacts(self) -> None:
        """Somebody compacts the table."""
        if self._there():
            DeltaTable(self.lake.path(TABLE)).optimize.compact()

    def restored(self) -> None:
        """Somebody goes back a version: a guard halts the next run."""
        if self._there():
            table = DeltaTable(self.lake.path(TABLE))
            table.restore(max(0, table.version() - 1))

    def recreated(self) -> None:
        """The topic is another one: a guard halts the next run."""
        self.lake.delete_topic(self.topic)
        self.lake.topic(self.topic, self.partitions)
        self.produced = [0] * self.partitions

    def _there(self) -> bool:
        return DeltaTable.is_deltatable(str(self.lake.path(TABLE)))


DEEDS: Mapping[str, Callable[[Planned], None]] = {
    each.__name__: each
    for each in (
        *(Planned.arrives, Planned.arrives, Planned.widens, Planned.expires, Planned.grows),
        *(Planned.compacts, Planned.restored, Planned.recreated),
    )
}


def foreseen(lake: Lake) -> PipelinePlan:
    [found] = plan(load(lake.file)).pipelines
    return found


def check(lake: Lake, spark: SparkSession) -> RivermouthError | None:
    """Plan, run, compare; what halted both."""
    found, config = foreseen(lake), load(lake.file)
    before = newest(lake)
    heard = lake.run(spark, NAME)
    [error] = [each.error for each in heard.ends]
    assert (found.error and found.error.code) == (error and error.code), f"{found} {error}"
    if error is not None:
        return error
    entries = [each for each in rivermouth.ranges(config, NAME) if each.sequence > before]
    read = merged(sorted(each for entry in entries for each in entry.ranges if each.span))
    assert read == found.ranges
    assert tuple(sorted(each for entry in entries for each in entry.lost)) == found.lost
    opened = [each for each in entries if not any(one.span for one in each.ranges)]
    assert bool(opened) == (found.opening is not None)
    assert len(entries) - len(opened) >= found.batches
    again = foreseen(lake)
    assert (again.statements, again.ranges, again.opening) == ((), (), None)
    return None


def newest(lake: Lake) -> int:
    """The sequence of the newest entry; 0 where there is none."""
    found = json.loads(lake.command("status", "--json").stdout)
    return int(found["pipelines"][0]["sequence"] or 0)


def accept(lake: Lake, error: RivermouthError) -> None:
    """An operator accepts what halted the run, as its message says."""
    what = error.remedy.partition("--accept ")[2].split()[0].rstrip(".,;)")
    done = lake.command("resume", NAME, "--accept", what)
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
def test_each_command_of_the_page_ends_well_in_80_columns(
    tmp_path: Path, rivermouth_broker: Broker
) -> None:
    world = Planned(Lake(tmp_path, rivermouth_broker.bootstrap_servers), random.Random(0))
    world.arrives()
    for line in "".join(snippets(page("plan"), "sh")).splitlines():
        _, command, _, *words = shlex.split(line)
        done = world.lake.command(command, *words)
        assert done.returncode == 0, done.stderr
        assert [
            each for each in done.stdout.splitlines() if len(each) > 80 and "/" not in each
        ] == []


@pytest.mark.short(("seed",), {(1,)})
@pytest.mark.parametrize("seed", range(25))
def test_a_plan_never_differs_from_what_the_run_then_did(
    seed: int, tmp_path: Path, rivermouth_broker: Broker, rivermouth_spark: SparkSession
) -> None:
    dice = random.Random(seed)
    world = Planned(Lake(tmp_path, rivermouth_broker.bootstrap_servers), dice)
    done = list[str]()
    for _ in range(STEPS):
        name = dice.choice([*DEEDS])
        DEEDS[name](world)
        done.append(name)
        error = check(world.lake, rivermouth_spark)
        if error is not None:
            accept(world.lake, error)
            assert check(world.lake, rivermouth_spark) is None, done
