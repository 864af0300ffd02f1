"""A user's own project: written, validated by the real CLI, its tests run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from rivermouth.config import load
from rivermouth.databricks.project import PASSED, over, scaffold
from rivermouth.errors import ConfigError, RivermouthError, ScaffoldRefused, SinkUnsupported
from tests.bundle.bundle_files import ROOT, TARGETS, jobs, read
from tests.bundle.cli import Cli, alone
from tests.bundle.runtime import install
from tests.bundle.workspace.executor import Outcome
from tests.bundle.workspace.workspace import Workspace
from tests.wheel import build

OURS = ("PYTHONPATH", "VIRTUAL_ENV")
SERVERS = ("--var", "bootstrap_servers=broker:9092")
DASHBOARD = "resources/overview.lvdash.json"
CONFIG = """\
version: 1
kafka:
  bootstrap.servers: ${env:KAFKA_BOOTSTRAP}
  security.protocol: SASL_SSL
  sasl.mechanism: PLAIN
  sasl.username: lake
  sasl.password: ${secret:${env:SECRET_SCOPE}/kafka-password}
warehouse:
  catalog: ${env:CATALOG}
  schema: ${env:SCHEMA}
  volume: ${env:VOLUME}
pipelines:
  web:
    source: &source
      topics: [web]
      format: json
      kafka.security.protocol: SASL_SSL
      start: {web: {0: 1200}}
    schema: &columns id BIGINT, at TIMESTAMP
    target: &clicks
      table: ${env:SCHEMA}.clicks
  app:
    source: {<<: *source, topics: [app], start: earliest}
    schema: *columns
    target: *clicks
  orders:
    source: {topics: [orders], format: json, key: string}
    schema: *columns
    target: {table: silver.orders, mode: upsert, keys: [id], order_by: [at]}
  raw:
    source: {topics: [raw], format: json}
    schema: *columns
    target: {table: "${env:SCHEMA}_raw.clicks"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my-lake"
    scaffold(folder)
    return folder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration that cannot be loaded by itself, for a broker that asks who one is."""
    file = tmp_path / "lake.yml"
    file.write_text(CONFIG, encoding="utf-8")
    return file


@pytest.mark.unit
def test_it_has_a_name_and_an_identity_of_its_own_and_no_wheel_to_build(
    project: Path, tmp_path: Path
) -> None:
    bundle = (project / "databricks.yml").read_text(encoding="utf-8")
    assert "name: my-lake" in bundle
    assert "default: my_lake" in bundle
    assert "artifacts" not in bundle
    other = tmp_path / "other"
    scaffold(other)
    assert _uuid(bundle) != _uuid((other / "databricks.yml").read_text(encoding="utf-8"))
    texts = [each.read_text(encoding="utf-8") for each in project.rglob("*") if each.is_file()]
    assert [text for text in texts if ".whl" in text or re.search(r"@\w+@", text)] == []


def _uuid(bundle: str) -> str:
    (line,) = (each for each in bundle.splitlines() if each.startswith("  uuid:"))
    return line


@pytest.mark.unit
def test_what_its_ci_runs_is_there(project: Path) -> None:
    ci = YAML(typ="safe").load((project / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    steps = [step for job in ci["jobs"].values() for step in job["steps"]]
    tests, *deploys = [step["run"] for step in steps if "run" in step]
    command, goal = tests.split()
    assert command == "make"
    assert f"\n{goal}:" in (project / "Makefile").read_text(encoding="utf-8")
    variables = read(project / "databricks.yml")["variables"]
    for command in deploys:
        assert re.fullmatch(r"databricks bundle (validate --strict|deploy) -t (\w+)", command)
        assert command.split()[-1] in TARGETS
    given = [name for job in ci["jobs"].values() for name in job.get("env", {})]
    set_there = [name.removeprefix("BUNDLE_VAR_") for name in given if name.startswith("BUNDLE")]
    assert set_there == ["bootstrap_servers"]
    assert set(set_there) <= set(variables)


@pytest.mark.unit
def test_it_overwrites_nothing_and_its_folder_names_it(project: Path, tmp_path: Path) -> None:
    with pytest.raises(ScaffoldRefused, match="not empty"):
        scaffold(project)
    with pytest.raises(ScaffoldRefused, match="9lives"):
        scaffold(tmp_path / "9lives!")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("form", "extras"), [("json", ""), ("avro", "registry"), ("protobuf", "registry,protobuf")]
)
def test_the_example_may_have_other_records_and_its_jobs_install_what_these_need(
    tmp_path: Path, form: str, extras: str
) -> None:
    scaffold(tmp_path / "lake", form=form)
    file = tmp_path / "lake" / "config" / "rivermouth.yml"
    loaded = load(file, {**PASSED})
    assert {each.source.format for each in loaded.pipelines.values()} == {form}
    named = f"rivermouth[{extras}]==" if extras else "rivermouth=="
    for job in (tmp_path / "lake" / "resources").glob("*.job.yml"):
        assert named in job.read_text(encoding="utf-8"), job
    local = f"rivermouth[{','.join(filter(None, ('local', extras)))}]=="
    assert local in (tmp_path / "lake" / "requirements.txt").read_text(encoding="utf-8")


KEYED = r", key: string\}\n(.*\n)    target: \{.*?\}"
REFUSED: dict[str, tuple[str, str, type[RivermouthError], str]] = {
    "deaf to the jobs": (
        r"\$\{env:(CATALOG|SCHEMA)\}",
        "fixed",
        ScaffoldRefused,
        "no CATALOG, SCHEMA",
    ),
    "a promise that no job could keep": (
        KEYED,
        r"}\n\1    target: {kafka: out, delivery: at-most-once}",
        SinkUnsupported,
        "at-most-once",
    ),
    "not sound": (r"silver\.orders", "orders", ConfigError, r"silver\.orders|schema\.table"),
}
"""What is replaced in the configuration, and the error."""


@pytest.mark.unit
@pytest.mark.parametrize("case", REFUSED)
def test_a_configuration_that_no_job_could_run_is_refused(
    tmp_path: Path, config: Path, case: str
) -> None:
    old, new, error, found = REFUSED[case]
    text = re.sub(old, new, CONFIG)
    assert text != CONFIG
    config.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=found):
        scaffold(tmp_path / "lake", config)
    assert not (tmp_path / "lake").exists()


@pytest.mark.unit
def test_it_knows_all_that_the_jobs_pass(project: Path) -> None:
    for job in sorted((project / "resources").glob("*.job.yml")):
        assert set(re.findall(r"--set=(\w+)=", job.read_text(encoding="utf-8"))) == set(PASSED)
    own_test = (project / "tests" / "test_project.py").read_text(encoding="utf-8")
    assert set(re.findall(r'^    "([A-Z_]+)": "', own_test, re.MULTILINE)) == set(PASSED)


@pytest.mark.unit
def test_the_dashboard_counts_bad_records_where_the_pipelines_put_them(
    tmp_path: Path, config: Path
) -> None:
    scaffold(tmp_path / "my-lake", config)
    text = (tmp_path / "my-lake" / DASHBOARD).read_text(encoding="utf-8")
    (dataset,) = (each for each in json.loads(text)["datasets"] if each["name"] == "quarantine")
    held, _, counted = "".join(dataset["queryLines"]).partition("\n)\n")
    assert held.splitlines() == [
        "WITH held AS (",
        "  SELECT pipeline, commit, code, reason FROM clicks_quarantine",
        "  UNION ALL",
        "  SELECT pipeline, commit, code, reason FROM `silver`.`orders_quarantine`",
        "  UNION ALL",
        "  SELECT pipeline, commit, code, reason FROM `my_lake_raw`.`clicks_quarantine`",
    ]
    assert "FROM held LEFT SEMI JOIN offsets" in counted


@pytest.mark.unit
def test_nothing_else_of_the_dashboard_is_changed() -> None:
    ours = (ROOT / DASHBOARD).read_text(encoding="utf-8")
    assert over(ours, ["bids_quarantine", "orders_quarantine"]) == ours


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_the_cli_validates_and_deploys_it(
    databricks: Path, workspace: Workspace, project: Path, tmp_path: Path, target: str
) -> None:
    cli = Cli(databricks, project, alone(workspace.url, tmp_path / "home"))
    cli.must("validate", "--strict", *SERVERS, "-t", target)
    cli.must("deploy", *SERVERS, "-t", target)
    assert workspace.stored()["jobs"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "title", "schema"), [("staging", "[staging] ", "staging_"), ("prod", "", "")]
)
def test_two_projects_live_in_one_workspace_and_share_nothing(
    databricks: Path, workspace: Workspace, tmp_path: Path, target: str, title: str, schema: str
) -> None:
    mine: dict[str, dict[str, bytes]] = {}
    for name in ("my-lake", "your-lake"):
        scaffold(tmp_path / name)
        before = workspace.tree.files()
        cli = Cli(databricks, tmp_path / name, alone(workspace.url, tmp_path / "home"))
        cli.must("deploy", *SERVERS, "-t", target)
        new = set(workspace.tree.files()) - set(before)
        mine[name] = {path: workspace.tree.read(path) for path in new}
    ours, yours = mine.values()
    assert {each.rpartition("/files/")[2] for each in ours} >= {"jobs/ingest.py"}
    assert len(ours) == len(yours)
    assert {path: workspace.tree.read(path) for path in ours} == ours, "overwritten"
    kinds = [each.body["name"].partition(" ")[2] for each in jobs()]
    made = [each["settings"] for each in workspace.rooms.jobs.shelf.all()]
    for name in mine:
        named = {each["name"] for each in made if each["tags"] == {"project": name}}
        assert named == {f"{title}{name} {kind}" for kind in kinds}
    stored = workspace.stored()
    assert sorted(stored["scopes"]) == [f"my-lake-{target}", f"your-lake-{target}"]
    assert sorted(stored["schemas"]) == [f"main.{schema}my_lake", f"main.{schema}your_lake"]


def runs_nothing(task: object) -> Outcome:
    """What a task does is another test's matter."""
    del task
    return Outcome("", 0)


@pytest.mark.slow
@pytest.mark.parametrize("executor", [runs_nothing])
def test_the_commands_of_its_readme_can_be_entered_as_they_stand(
    databricks: Path, workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    environ = alone(workspace.url, tmp_path / "home")
    said = (project / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    (export .*|databricks .*)$|`(databricks bundle .*)`", said, re.M)
    entered = []
    for command in (indented or within for indented, within in commands):
        word, *arguments = shlex.split(command)
        if word == "export":
            name, _, text = arguments[0].partition("=")
            environ[name] = text
        else:
            Cli(databricks, project, environ).must(*arguments[1:])
            entered.append(arguments[1])
    assert entered == ["validate", "deploy", "run", "run", "deploy"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with rivermouth's wheel, as an index would give it, and the packages it needs."""
    folder = tmp_path_factory.mktemp("installed")
    install(build(folder), folder / "venv", folder / "venv" / "bin" / "python")
    (folder / "venv" / "ready").touch()
    return folder / "venv"


def user(*command: object, folder: Path, **more: str) -> str:
    """What a command says to somebody who has no source of ours; it must succeed."""
    environ = {name: text for name, text in os.environ.items() if name not in OURS} | more
    done = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def locked() -> str:
    """The versions that all tests have: what a later one breaks is no news of this commit."""
    lock = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    pins = (line.rstrip(" \\") for line in lock.splitlines() if line[:1].isalnum())
    return "\n".join(pins)


def own_test(project: Path, environment: Path) -> str:
    """What ``make test`` says, with an environment that is there instead of one to fetch."""
    (project / ".venv").symlink_to(environment, target_is_directory=True)
    (environment / "ready").touch()
    return make_test(project, environment)


def make_test(project: Path, environment: Path, **more: str) -> str:
    """What ``make test`` says; the rivermouth that it uses lies in ``environment``."""
    make = shutil.which("make")
    assert make, "make is missing"
    said = user(make, "test", folder=project, **more)
    where = "import rivermouth; print(rivermouth.__file__)"
    used = user(project / ".venv" / "bin" / "python", "-c", where, folder=project).strip()
    assert Path(used).resolve().is_relative_to(environment.resolve())
    return said


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.kafka
def test_a_new_user_makes_a_project_and_its_own_test_passes(
    environment: Path, tmp_path: Path
) -> None:
    """Nothing is there but the wheel, in a folder instead of on an index."""
    said = user(environment / "bin" / "rivermouth", "bundle", "init", "my-lake", folder=tmp_path)
    assert said.endswith("Next: cd my-lake && make test\n")
    project = tmp_path / "my-lake"
    wheels = f"{environment.parent} {os.environ.get('PIP_FIND_LINKS', '')}".strip()
    (tmp_path / "pins.txt").write_text(locked(), encoding="utf-8")
    pinned = {"PIP_CONSTRAINT": str(tmp_path / "pins.txt"), "PIP_RETRIES": "10"}
    said = make_test(project, project / ".venv", PIP_FIND_LINKS=wheels, **pinned)
    assert " 1 passed in " in said
    assert not (project / ".venv").is_symlink()


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.kafka
def test_so_does_that_of_one_for_a_secured_broker_and_tables_in_several_schemas(
    environment: Path, databricks: Path, workspace: Workspace, config: Path, tmp_path: Path
) -> None:
    command = (environment / "bin" / "rivermouth", "bundle", "init", "my-lake", "--config", config)
    user(*command, folder=tmp_path)
    project = tmp_path / "my-lake"
    assert (project / "config" / "rivermouth.yml").read_text(encoding="utf-8") == CONFIG
    cli = Cli(databricks, project, alone(workspace.url, tmp_path / "home"))
    for target in TARGETS:
        cli.must("validate", "--strict", *SERVERS, "-t", target)
    assert " 1 passed in " in own_test(project, environment)
