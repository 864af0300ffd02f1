"""A password that a run really uses is seen nowhere: not in what it says, writes or is called."""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.bundle.workspace.messages import Request
from tests.bundle.workspace.sdk import environ_of
from tests.bundle.workspace.workspace import Workspace
from tests.faults.secured_broker import SecuredBroker, secured_broker
from tests.lake import Lake, append_pipeline, retrying
from tests.processes import Started, processes, said_by, started
from tests.waiting import wait_for, wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

TOPIC = "canary"
RIGHT, WRONG = f"right-{secrets.token_hex(12)}", f"wrong-{secrets.token_hex(12)}"
CANARIES = {"CANARY_RIGHT": RIGHT, "CANARY_WRONG": WRONG}


@dataclass
class Watched:
    """A lake behind a password, the commands run on it, and all that was seen of them."""

    lake: Lake
    secured: SecuredBroker
    form: str
    """How a configuration names a password: ``NAME`` stands for what it is called."""
    keeps: Mapping[str, str]
    """The environment of the commands, through which they find the passwords."""
    seen: dict[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> Mapping[str, str]:
        return {
            **self.keeps,
            "RIVERMOUTH_SCRATCH": str(self.lake.scratch),
            "RIVERMOUTH_TRACE": str(self.lake.folder / "trace.jsonl"),
        }

    def configure(self, variable: str, table: str) -> Path:
        """A configuration with the password of this name; the broker wants RIGHT."""
        password = self.form.replace("NAME", variable)
        pipeline = {**append_pipeline(TOPIC), "target": {"table": table}}
        # Not used without TLS and OAuth, but given to both clients.
        names = ("ssl.key.password", "ssl.keystore.password", "ssl.key.pem", "ssl.certificate.pem")
        secret = "sasl.oauthbearer.client.credentials.client.secret"
        unused = dict.fromkeys((*names, secret), password)
        self.lake.settings = self.secured.login("owner", password, jaas=True, **unused)
        self.lake.write(p=retrying(pipeline, seconds=5))
        return self.lake.file.rename(self.lake.folder / f"{variable}.yml")

    def start(self, file: Path, *words: str) -> Started:
        name, *rest = words
        command = [sys.executable, "-m", "rivermouth", name, str(file), *rest]
        return started(command, self.environ)

    def finish(self, process: subprocess.Popen[str]) -> int:
        """Wait for a command and keep what it said."""
        said = said_by(process)
        self.seen[repr(process.args)] = said
        return process.returncode

    def read_files(self, when: str) -> None:
        """Keep what lies in the lake's folder now: tables, scratch, checkpoints, logs, trace."""
        for folder, _, names in os.walk(self.lake.folder):
            for file in (Path(folder, name) for name in names):
                with suppress(FileNotFoundError):  # a run removes what it has done with
                    self.seen[f"{file} {when}"] = file.read_bytes().decode("latin-1")

    def where(self, text: str) -> list[str]:
        return [name for name, content in self.seen.items() if text in content]


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    """One whose secret scope ``canary`` keeps the passwords."""
    with Workspace() as running:
        keeper = running.rooms.secrets
        keeper.create_scope(_request(scope="canary"))
        for name, text in CANARIES.items():
            keeper.put_secret(_request(scope="canary", key=name, string_value=text))
        yield running
    assert running.unknown == [], "no route knows these"


def _request(**body: str) -> Request:
    return Request.parse("POST", "/", json.dumps(body).encode())


@pytest.fixture(params=["${env:NAME}", "${secret:canary/NAME}"])
def watched(
    request: pytest.FixtureRequest,
    workspace: Workspace,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Watched]:
    form = str(request.param)
    home = tmp_path_factory.mktemp("home")
    named = {**os.environ, **CANARIES} if "env" in form else environ_of(workspace.url, home)
    users = {"owner": RIGHT}
    with secured_broker(tmp_path_factory.mktemp("secured") / "broker", users) as secured:
        servers = secured.broker.bootstrap_servers
        lake = Lake(tmp_path_factory.mktemp("watched"), servers)
        lake.topic(TOPIC)
        lake.bids(TOPIC)
        yield Watched(lake, secured, form, named)


def look(watched: Watched, file: Path, *commands: str) -> dict[str, int]:
    """Start all commands at once; return the exit code each ends with."""
    with ExitStack() as stack:
        all_of_them = [stack.enter_context(watched.start(file, name)) for name in commands]
        return dict(zip(commands, map(watched.finish, all_of_them), strict=True))


def run_until_the_topic_goes(watched: Watched, file: Path) -> None:
    """A run with the right password, looked at while it runs, that fails in the end."""
    with watched.start(file, "run", "--continuous") as process:
        wait_for_rows(watched.lake.path("bronze.canary"), 5)
        wait_for_rows(watched.lake.path("rivermouth.offsets"), 2)  # the birth's, and the batch's
        watched.read_files("while it runs")
        named = processes(process.pid)
        assert any("java" in line for line in named.values())
        watched.seen["ps"] = "\n".join(named.values())
        ended = look(watched, file, "status", "verify", "doctor", "validate")
        assert set(ended.values()) == {0}
        watched.lake.delete_topic(TOPIC)
        wait_for(lambda: process.poll() is not None)
        assert watched.finish(process) != 0


def test_a_password_is_seen_nowhere_whatever_is_run_and_however_it_ends(
    watched: Watched, workspace: Workspace
) -> None:
    right = watched.configure("CANARY_RIGHT", "bronze.canary")
    wrong = watched.configure("CANARY_WRONG", "bronze.refused")
    with watched.start(wrong, "run") as refused:
        run_until_the_topic_goes(watched, right)
        assert watched.finish(refused) == 1
    assert "RM30" in watched.seen[repr(refused.args)]
    look(watched, wrong, "status", "verify", "doctor")
    look(watched, right, "status", "verify", "doctor")
    watched.read_files("in the end")

    for password in (RIGHT, WRONG):
        assert watched.where(password) == []
        assert watched.where(base64.b64encode(password.encode()).decode()) == []
    found = {Path(name.partition(" ")[0]).name for name in watched.where("canary")}
    assert {"trace.jsonl", "CANARY_RIGHT.yml"} <= found, "what is looked for would be found"
    assert any(name.endswith("while it runs") and "checkpoints" in name for name in watched.seen)
    assert any("spark.log" in name for name in watched.seen)
    assert json.loads(watched.seen[f"{right} in the end"])["kafka"]["ssl.key.password"]
    asked = {str(each) for each in workspace.log if "secrets" in each.request.path}
    assert asked == ({"GET /api/2.0/secrets/get -> 200"} if "secret" in watched.form else set())


@pytest.mark.parametrize("watched", ["${secret:canary/NAME}"], indirect=True)
def test_a_secret_that_cannot_be_read_ends_each_command_with_its_scope_and_key(
    watched: Watched,
) -> None:
    absent = watched.configure("ABSENT", "bronze.absent")
    ended = look(watched, absent, "run", "verify", "doctor", "status")
    assert ended == {"run": 2, "verify": 2, "doctor": 2, "status": 0}
    assert len(watched.seen) == len(ended)
    for said in watched.seen.values():
        assert "RM207" in said
        assert "canary/ABSENT" in said
