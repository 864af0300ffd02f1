"""The calls of Python: what they take and refuse, whose session they end, what they tell."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import rivermouth
from rivermouth.config import Config, load, unresolved
from rivermouth.config.platforms import LOCAL, SERVERLESS
from rivermouth.databricks import calls
from rivermouth.errors import ConfigError, OffsetGap
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.run.outcome import Report, ended
from rivermouth.run.report import Listener, PipelineReport, Silent
from rivermouth.spark.session import Spark
from rivermouth.verification import ProofFiles, Since, Verification
from rivermouth.verification.result import PipelineProof
from tests.lake import Heard

pytestmark = pytest.mark.unit

LAKE = """
version: 1
kafka: {bootstrap.servers: "${env:BROKERS:-127.0.0.1:9}"}
warehouse: WAREHOUSE
pipelines:
  a: {source: {topics: [t], format: json}, schema: id BIGINT, target: {table: s.a}}
  b: {source: {topics: [t], format: json}, schema: id BIGINT, target: {table: s.b}}
"""
SESSION = cast(SparkSession, object())
GAP = OffsetGap("a gap", where="t-0", found="9")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration whose tables are in a folder."""
    path = tmp_path / "lake.yml"
    path.write_text(LAKE.replace("WAREHOUSE", "./lake"), encoding="utf-8")
    return path


@pytest.fixture
def in_catalog(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.yml"
    path.write_text(LAKE.replace("WAREHOUSE", "{catalog: main}"), encoding="utf-8")
    return path


def did(name: str, error: OffsetGap | None = None) -> PipelineReport:
    return PipelineReport(name, 1, 40, 0, 5, 1.5, error)


@dataclass
class Runs:
    """Stands for runs: what they were made with, what they were asked, how pipelines end."""

    made: list[dict[str, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    listener: Listener | None = None
    ends: dict[str, OffsetGap] = field(default_factory=dict)
    reads: bool = True
    """Whether there are records to read, so that a session is needed."""

    def __call__(self, config: Config, session: Spark, scratch: Path, **settings: Any) -> Runs:
        self.made.append({"config": config, "session": session, "scratch": scratch, **settings})
        return self

    def pipelines(
        self, names: Sequence[str], listener: Listener, stop: threading.Event
    ) -> list[PipelineReport]:
        del stop
        if self.reads:
            with ThreadPoolExecutor(1) as threads:
                assert threads.submit(self.made[-1]["session"].session).result() is SESSION
        self.names, self.listener = [*names], listener
        reports = [did(each, self.ends.get(each)) for each in names]
        for each in reports:
            listener.finished(each)
        return reports


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """What runs pipelines: no session is asked what it can do."""
    found = Runs()
    monkeypatch.setattr("rivermouth.run.run.Run", found)
    monkeypatch.setattr(calls, "platform_with", lambda *_: LOCAL)
    return found


@dataclass
class Sessions:
    """What is started, and how often it is ended."""

    started: int = 0
    ended: int = 0

    def start(self, *_: object) -> SparkSession:
        self.started += 1
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda *_: None)  # as Spark does
        return SESSION

    @contextmanager
    def ending(self, session: SparkSession) -> Iterator[None]:
        assert session is SESSION
        yield
        self.ended += 1


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    """Local sessions; none runs yet."""
    found = Sessions()
    monkeypatch.setattr("rivermouth.run.starting.start_spark", found.start)
    monkeypatch.setattr("rivermouth.run.starting.spark_runs", lambda: False)
    monkeypatch.setattr("rivermouth.local.session.ending", found.ending)
    return found


# The report


def test_a_report_says_what_the_command_says() -> None:
    report = Report((did("a"), did("b", GAP)))
    assert not report.ok
    assert report.exit_code == 5
    assert str(report) == ended(report.pipelines, stopped=False, shown_before=False)
    assert "FAILED b\n  RM401 t-0: a gap" in str(report)
    assert [each["ok"] for each in report.as_dict()["pipelines"]] == [True, False]


# The session


def test_a_session_that_is_given_is_used_and_not_ended(
    file: Path, runs: Runs, sessions: Sessions
) -> None:
    report = rivermouth.ingest(file, SESSION, continuous=True, audit=True)
    assert report.pipelines == (did("a"), did("b"))
    [made] = runs.made
    assert (made["session"].started, made["platform"]) == (SESSION, LOCAL)
    assert (made["continuous"], made["audit"]) == (True, True)
    assert (sessions.started, sessions.ended) == (0, 0)


def test_without_one_a_session_is_started_and_ended_and_the_handler_of_ctrl_c_stays(
    file: Path, runs: Runs, sessions: Sessions, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert rivermouth.ingest(str(file)).ok
    assert (sessions.started, sessions.ended) == (1, 1)
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr() == ("", "")
    assert runs.names == ["a", "b"]


def test_without_records_none_is_started(file: Path, runs: Runs, sessions: Sessions) -> None:
    runs.reads = False
    assert rivermouth.ingest(file).ok
    assert [made["platform"] for made in runs.made] == [LOCAL]
    assert (sessions.started, sessions.ended) == (0, 0)


@pytest.mark.parametrize("where", ["file", "in_catalog"])
def test_a_session_that_runs_already_is_used_and_not_ended(
    where: str,
    request: pytest.FixtureRequest,
    runs: Runs,
    sessions: Sessions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That of the platform, too: with tables in a catalog nobody asks whether one runs."""
    monkeypatch.setattr("rivermouth.run.starting.spark_runs", lambda: where == "file")
    monkeypatch.setattr("rivermouth.run.starting.session_there", lambda: SESSION)
    assert rivermouth.ingest(request.getfixturevalue(where)).ok
    assert len(runs.made) == 1
    assert (sessions.started, sessions.ended) == (0, 0)


def test_serverless_compute_runs_nothing_without_end(
    file: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "platform_with", lambda *_: SERVERLESS)
    with pytest.raises(ConfigError, match="serverless compute runs no endless query"):
        rivermouth.ingest(file, SESSION, continuous=True)
    assert runs.made == []


# What it is called with


@pytest.mark.parametrize(
    ("select", "names"),
    [
        (None, ["a", "b"]),
        ("", ["a", "b"]),
        ("b", ["b"]),
        ("b, a", ["a", "b"]),
        (["b"], ["b"]),
        (("b", "a"), ["a", "b"]),
        (iter(["a"]), ["a"]),
    ],
)
def test_pipelines_are_selected_by_a_text_or_by_names(
    file: Path, runs: Runs, select: Any, names: list[str]
) -> None:
    rivermouth.ingest(file, SESSION, select)
    assert runs.names == names


def test_no_names_select_no_pipeline_and_start_nothing(
    file: Path, runs: Runs, sessions: Sessions
) -> None:
    assert rivermouth.ingest(file, select=[]) == Report(())
    assert runs.made == []
    assert sessions.started == 0


def test_an_unknown_name_is_raised_before_anything_starts(file: Path, sessions: Sessions) -> None:
    for call in (rivermouth.ingest, rivermouth.verify):
        with pytest.raises(ConfigError, match='select: there is no pipeline "c"'):
            call(file, select=["a", "c"])
    assert sessions.started == 0


def test_a_file_is_loaded_with_the_environment_and_the_folder_that_are_given(
    file: Path, runs: Runs, tmp_path: Path
) -> None:
    environ, folder = {"BROKERS": "k:9092"}, tmp_path / "other"
    rivermouth.ingest(file, SESSION, environ=environ, folder=folder)
    [made] = runs.made
    assert made["config"].kafka.bootstrap_servers == "k:9092"
    assert made["config"].files == folder


def test_a_configuration_that_is_loaded_takes_neither(file: Path, runs: Runs) -> None:
    config = load(file)
    rivermouth.ingest(config, SESSION)
    assert runs.made[0]["config"] is config
    with pytest.raises(ConfigError, match="is loaded already"):
        rivermouth.status(config, environ={})
    with pytest.raises(ConfigError, match="is loaded already"):
        rivermouth.verify(config, folder=Path("x"))


def test_a_file_that_is_wrong_is_raised(tmp_path: Path) -> None:
    for call in (rivermouth.ingest, rivermouth.status, rivermouth.verify):
        with pytest.raises(ConfigError, match="there is no such file"):
            call(tmp_path / "none.yml")


def test_secrets_are_those_that_are_given_or_of_databricks(
    file: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "secrets_here", lambda: "of databricks")
    rivermouth.ingest(file, SESSION)
    rivermouth.ingest(file, SESSION, secrets=unresolved)
    assert [each["secrets"] for each in runs.made] == ["of databricks", unresolved]


# What it tells


def test_a_pipeline_that_fails_is_in_the_report_and_the_listener_hears_of_each(
    file: Path, runs: Runs
) -> None:
    runs.ends, heard = {"b": GAP}, Heard()
    report = rivermouth.ingest(file, SESSION, listener=heard)
    assert report.exit_code == 5
    assert [each.error for each in report.pipelines] == [None, GAP]
    assert tuple(heard.ends) == report.pipelines


def test_who_has_set_stop_reads_so_in_the_report(file: Path, runs: Runs) -> None:
    stop = threading.Event()
    stop.set()
    stopped = rivermouth.ingest(file, SESSION, stop=stop)
    assert (stopped.stopped, stopped.exit_code) == (True, 0)
    assert str(stopped).endswith("OK: stopped; the next run continues from here")
    assert not rivermouth.ingest(file, SESSION).stopped
    assert isinstance(runs.listener, Silent), "who only wants the result hears nothing"


def test_a_status_prints_as_the_command_shows_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Config] = []

    def ask(config: Config, **_: object) -> Status:
        asked.append(config)
        return Status([PipelineStatus("a", State.NEW, "s.a")])

    monkeypatch.setattr(calls, "ask", ask)
    found = rivermouth.status(file)
    assert [each.name for each in asked[0].pipelines.values()] == ["a", "b"]
    assert found.as_dict()["pipelines"][0]["state"] == "NEW"
    assert "NEW" in str(found).splitlines()[-1]
    assert "\npipeline  state" in str(found)


def test_a_status_needs_tables_in_a_folder(in_catalog: Path) -> None:
    with pytest.raises(ConfigError, match="the tables are in the catalog main"):
        rivermouth.status(in_catalog)


@pytest.fixture
def proving(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What ``verify`` was called with."""
    asked: dict[str, Any] = {}

    def verify(config: Config, names: Sequence[str], progress: object, **more: Any) -> Verification:
        asked.update(config=config, names=[*names], progress=progress, **more)
        return Verification([PipelineProof("a", 3, 40, 0, 0, 0)])

    monkeypatch.setattr(calls, "verify_pipelines", verify)
    return asked


def test_a_proof_prints_as_the_command_shows_it(file: Path, proving: dict[str, Any]) -> None:
    found = rivermouth.verify(file, select="a", strict=True, since="last", record=False)
    assert found.ok
    assert str(found).endswith("OK: 40 records read again, 0 missing, 0 duplicated")
    assert proving["names"] == ["a"]
    assert (proving["strict"], proving["since"], proving["record"]) == (True, Since(), False)
    assert proving["tables"] is None


def test_a_proof_of_tables_in_a_catalog_is_kept_in_its_volume(
    in_catalog: Path, proving: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "session_there", lambda: SESSION)
    for spark in (SESSION, None):
        rivermouth.verify(in_catalog, spark)
        assert proving["tables"] is not None
        assert isinstance(proving["proofs"], ProofFiles)


def test_a_time_that_is_no_time_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="since yesterday: write last"):
        rivermouth.verify(file, since="yesterday")


# The names


def test_the_calls_are_calls_also_once_the_packages_are_imported() -> None:
    code = (
        "import rivermouth\n"
        "assert callable(rivermouth.verify) and callable(rivermouth.status)\n"
        "import rivermouth.verification, rivermouth.run, rivermouth.operate.status\n"
        "from rivermouth import ingest, status, verify\n"
        "assert all(map(callable, (ingest, status, verify, rivermouth.verification.verify)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_spark_status_and_verify_are_there_and_ingest_says_what_is_missing(
    file: Path,
) -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('pyspark', 'delta')))\n"
        "import rivermouth\n"
        "from rivermouth.errors import MissingPackage\n"
        f"print(rivermouth.status({str(file)!r}, environ={{}}))\n"
        "assert callable(rivermouth.verify)\n"
        "try:\n"
        f"    rivermouth.ingest({str(file)!r})\n"
        "except MissingPackage as fault:\n"
        "    print(fault)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "UNKNOWN" in done.stdout
    assert "pyspark is not installed" in done.stdout
