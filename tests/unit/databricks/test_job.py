"""The jobs: what they import, what they refuse before they do anything, how they end."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from rivermouth.config.platforms import SERVERLESS
from rivermouth.databricks.job import Job, finish, parameters
from rivermouth.errors import ConfigError, TopicMissing

pytestmark = pytest.mark.unit

JOBS = Path(__file__).parents[3] / "jobs"

LAKE = """
version: 1
kafka: {bootstrap.servers: "${env:BROKERS}"}
warehouse: {catalog: main}
pipelines:
  a: {source: {topics: [t], format: json}, schema: id BIGINT, target: {table: s.a}}
  b: {source: {topics: [t], format: json}, schema: id BIGINT, target: {table: s.b}}
"""


@pytest.fixture
def job_of(tmp_path: Path) -> Callable[..., Job]:
    """The job that these parameters describe."""
    file = tmp_path / "lake.yml"
    file.write_text(LAKE, encoding="utf-8")

    def described(*given: str) -> Job:
        return Job.of(parameters("").parse_args([f"--config={file}", *given]))

    return described


def test_what_is_set_is_what_the_configuration_reads(job_of: Callable[..., Job]) -> None:
    job = job_of("--set=BROKERS=k:9092,l:9092", "--select=b")
    assert job.config.kafka.bootstrap_servers == "k:9092,l:9092"
    assert job.names == ["b"]


@pytest.mark.parametrize("pair", ["BROKERS", "=k:9092"])
def test_what_is_no_pair_is_refused(job_of: Callable[..., Job], pair: str) -> None:
    with pytest.raises(ConfigError, match="write NAME=VALUE"):
        job_of(f"--set={pair}")


def test_serverless_compute_runs_nothing_without_end(job_of: Callable[..., Job]) -> None:
    job = job_of("--set=BROKERS=k:9092")
    job.__dict__["platform"] = SERVERLESS
    with pytest.raises(ConfigError, match="leave out --continuous"):
        job.ingest(continuous=True)


def test_one_person_accepts_for_one_pipeline_at_a_time(job_of: Callable[..., Job]) -> None:
    with pytest.raises(ConfigError, match="name one pipeline"):
        job_of("--set=BROKERS=k:9092").resume("restore")


@pytest.mark.parametrize(
    ("accept", "offsets", "why"),
    [
        ("everything", "", "--accept everything: write one of"),
        ("cluster", "/nowhere", "--offsets /nowhere: write same, start, or a file"),
    ],
)
def test_what_cannot_be_accepted_is_refused_before_spark_starts(
    job_of: Callable[..., Job], accept: str, offsets: str, why: str
) -> None:
    job = job_of("--set=BROKERS=k:9092", "--select=b")
    with pytest.raises(ConfigError, match=why):
        job.resume(accept, offsets)
    assert "session" not in job.__dict__


def test_less_than_a_day_of_retention_is_refused_before_spark_starts(
    job_of: Callable[..., Job],
) -> None:
    job = job_of("--set=BROKERS=k:9092")
    with pytest.raises(ConfigError, match="at least 24"):
        job.maintain(retain_hours=23)
    assert "session" not in job.__dict__


@pytest.mark.parametrize("script", sorted(JOBS.glob("*.py")), ids=lambda path: path.name)
def test_a_script_depends_on_one_module_of_rivermouth(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {x.name for node in ast.walk(tree) if isinstance(node, ast.Import) for x in node.names}
    assert modules | names == {"__future__", "rivermouth.databricks.job"}


def test_a_job_that_went_well_returns_and_any_other_ends_the_process_with_its_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    finish(lambda: 0)
    with pytest.raises(SystemExit) as ended:
        finish(lambda: 5)
    assert ended.value.code == 5

    def fails() -> int:
        raise TopicMissing("topic t does not exist", where="a")

    with pytest.raises(SystemExit) as ended:
        finish(fails)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("RM302 a: topic t does not exist")
