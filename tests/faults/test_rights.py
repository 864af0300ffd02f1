"""Each command works with exactly the rights that docs/configuration.md names for it.

Kafka's own authorizer decides, on a real broker. Each command has a user of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.commands import Done
from tests.faults.secured_broker import Right, SecuredBroker, secured_broker
from tests.kafka.test_sinks import sending
from tests.lake import Lake, append_pipeline, bid

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
OPERATIONS = {"none": "", "`Read`": "READ", "`Write`": "WRITE", "`Describe`": "DESCRIBE"}
PLACES: Mapping[str, tuple[str, str]] = {
    "topics": ("TOPIC", "rights"),
    "sinks": ("TOPIC", "rights-out"),
    "group": ("GROUP", "rights-group"),
    "cluster": ("CLUSTER", "kafka-cluster"),
    "transactional id": ("TRANSACTIONAL_ID", "*"),
}
"""What each column of the table of the page is about."""

Rights = dict[str, str]
"""Operations by the column of the page."""


def shown() -> dict[str, Rights]:
    """The rights of each command, as the page has them."""
    table = PAGE.partition("<!-- rights -->\n")[2].partition("<!-- end -->")[0]
    head, _, *rows = ([cell.strip() for cell in each.split("|")[1:-1]] for each in lines(table))
    return {
        command: dict(zip(head[1:], (OPERATIONS[cell] for cell in cells), strict=True))
        for names, *cells in rows
        for command in re.findall(r"`([a-z-]+)`", names)
    }


def lines(table: str) -> list[str]:
    return [each for each in table.splitlines() if each.startswith("|")]


COMMANDS = shown()
WEAKER = {"READ": "DESCRIBE", "WRITE": "DESCRIBE", "DESCRIBE": ""}
ASKING = ("doctor", "status", "topic", "verify")
"""Commands that do not start Spark, so that they are tried with less as well."""
LESS = [
    (command, place)
    for command in ASKING
    for place, operation in COMMANDS[command].items()
    if operation and place != "group"  # which is told as not known, after some seconds
]


def less(command: str, place: str) -> Rights:
    """The rights of a command, but the next weaker one in one place."""
    rights = COMMANDS[command]
    return {**rights, place: WEAKER[rights[place]]}


USERS: Mapping[str, Rights] = {
    **COMMANDS,
    **{f"{command}-less-{place}": less(command, place) for command, place in LESS},
}

Command = Callable[..., Done]
"""Runs a command as a user."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("rights") / "broker"
    with secured_broker(folder, dict.fromkeys(USERS, "secret")) as running:
        running.give(
            *(
                Right(user, *PLACES[place], operation)
                for user, rights in USERS.items()
                for place, operation in rights.items()
                if operation
            )
        )
        yield running


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, secured: SecuredBroker) -> Lake:
    """Two pipelines of one topic: into a table with a mirrored group, and into another topic."""
    lake = Lake(tmp_path_factory.mktemp("lake"), secured.broker.bootstrap_servers)
    lake.topic("rights")
    lake.topic("rights-out")
    lake.bids("rights")
    return lake


@pytest.fixture
def run_as(lake: Lake, secured: SecuredBroker, rivermouth_spark: SparkSession) -> Command:
    def run(user: str, *words: str) -> Done:
        """As a user. On the group that its pipeline names for itself nobody has a right."""
        lake.settings = secured.login(user, "secret")
        own = {"mirror_group": "rights-group", "kafka.group.id": user}
        lake.configure(p=append_pipeline("rights", **own), s=sending("rights", "rights-out"))
        return lake.command(*words, spark=rivermouth_spark)

    return run


@pytest.fixture
def read(lake: Lake, run_as: Command) -> Lake:
    """The lake once a run has read all, with the rights that the page names for it."""
    if not (lake.path("bronze.rights") / "_delta_log").exists():
        ended = run_as("run", "run", "--json")
        assert ended.returncode == 0, ended
        assert [each["applied"] for each in json.loads(ended.stdout)["pipelines"]] == [5, 5]
    return lake


def doctor(run_as: Command, user: str, lake: Lake) -> bool:
    ended = run_as(user, "doctor")
    return ended.returncode == 0 and ended.stdout.count("retention unknown") == 2


def status(run_as: Command, user: str, lake: Lake) -> bool:
    found = json.loads(run_as(user, "status", "--json").stdout)["pipelines"]
    whole = all((each["state"], each["lag"]["messages"]) == ("OK", 0) for each in found)
    return whole and found[0]["mirror"]["behind"] == 0


def topic(run_as: Command, user: str, lake: Lake) -> bool:
    lake.produce("rights", [(None, bid(5), 0)])  # a record that waits, so that its age is asked
    ended = run_as(user, "topic", "rights", "--at", "2026-01-01T00:00:00Z", "--json")
    return ended.returncode == 0 and json.loads(ended.stdout)["unknown"].keys() == {"retention"}


def verify(run_as: Command, user: str, lake: Lake) -> bool:
    ended = run_as(user, "verify", "--strict", "--processes", "1", "--json")
    if ended.returncode:
        return False
    found = json.loads(ended.stdout)["pipelines"]
    assert [each["not_checked"] for each in found] == [{}, {}]
    text = "whether Kafka compacts {} (DescribeConfigs)"
    assert [each["not_told"] for each in found] == [
        [text.format("rights")],
        [text.format("rights"), text.format("rights-out")],
    ]
    return True


WORK: Mapping[str, Callable[[Command, str, Lake], bool]] = {
    "doctor": doctor,
    "status": status,
    "topic": topic,
    "verify": verify,
}


@pytest.mark.parametrize("command", ASKING)
def test_a_command_that_asks_works_with_its_rights(
    read: Lake, run_as: Command, command: str
) -> None:
    assert WORK[command](run_as, command, read)


@pytest.mark.parametrize(("command", "place"), LESS)
def test_it_does_not_work_with_less(read: Lake, run_as: Command, command: str, place: str) -> None:
    assert not WORK[command](run_as, f"{command}-less-{place}", read)


@pytest.mark.parametrize(
    ("words", "user"),
    [
        (("maintain", "--select", "p", "--dry-run"), "maintain"),
        (("validate",), "validate"),
        (("sql", "SELECT count(*) FROM bronze.rights"), "sql"),
        (("offsets rebuild",), "offsets"),
    ],
    ids=["maintain", "validate", "sql", "offsets"],
)
def test_a_command_that_reads_no_topic_needs_no_right(
    read: Lake, run_as: Command, words: tuple[str, ...], user: str
) -> None:
    assert not any(COMMANDS[user].values())
    ended = run_as(user, *words)
    assert ended.returncode == 0, ended


def test_a_replay_works_with_its_rights(read: Lake, run_as: Command) -> None:
    words = ("p", "--from", "earliest", "--into", "bronze.again", "--yes")
    assert run_as("replay", "replay", *words).returncode == 0
    assert len(read.rows("bronze.again")) == 5


def test_what_an_operator_accepts_needs_no_more_than_the_page_says(
    read: Lake, run_as: Command
) -> None:
    table = DeltaTable(str(read.path("bronze.rights")))
    table.delete("auction = 3")
    words = ("p", "--versions", str(table.version()))
    assert run_as("accept-deletes", "accept-deletes", *words).returncode == 0

    DeltaTable(str(read.path("bronze.rights"))).delete()
    assert run_as("resume", "resume", "p", "--accept", "reset").returncode == 0


def test_every_command_of_the_page_is_tried() -> None:
    tried = {*ASKING, "run", "replay", "resume", "accept-deletes"}
    assert {*COMMANDS} == tried | {"maintain", "validate", "sql", "offsets"}
