"""The command line: usage, validation, exit codes, and what it does not import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

import rivermouth as package
from rivermouth.cli.app import main
from rivermouth.config import json_schema, load, unresolved
from rivermouth.errors import RivermouthError, SetupError
from rivermouth.local.machine import CAPACITY, MEMORY, heap_settings
from rivermouth.local.scratch import scratch_root
from rivermouth.run.outcome import NOT_OK
from rivermouth.run.report import exit_code
from rivermouth.run.starting import start_spark
from tests.unit.cli.conftest import CONFIG, Rivermouth

pytestmark = pytest.mark.unit

COMMANDS = (
    "init run resume accept-deletes replay status topic plan preview peek history at report verify "
    "sql maintain schema validate doctor broker demo completion offsets config bundle",
    "offsets rebuild",
    "schema infer",
    "config schema",
    "bundle init",
)
HEAVY = ("pyspark", "deltalake", "confluent_kafka", "pyarrow")


@dataclass(frozen=True)
class Ended:
    """A pipeline that ended with ``error``, or well."""

    error: RivermouthError | None


def test_the_version_is_that_of_the_package(rivermouth: Rivermouth) -> None:
    ended = rivermouth("--version")
    assert (ended.code, ended.out) == (0, f"rivermouth {package.__version__}\n")
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{package.__version__}"\n' in project


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(
    "command", ["", *COMMANDS[0].split(), *COMMANDS[1:]], ids=lambda text: text or "rivermouth"
)
def test_every_command_explains_itself_in_80_columns(
    rivermouth: Rivermouth, command: str, flag: str
) -> None:
    ended = rivermouth(*command.split(), flag)
    assert ended.code == 0
    assert f"Usage: rivermouth {command}".rstrip() in ended.out
    assert [line for line in ended.out.splitlines() if len(line) > 80] == []


def test_the_help_lists_every_command_with_a_whole_sentence(rivermouth: Rivermouth) -> None:
    listed = rivermouth("--help").out.partition("Commands:")[2]
    assert "..." not in listed
    for command in COMMANDS[0].split():
        assert re.search(rf"^  {command} .+\.$", listed, re.MULTILINE), command


def every_error(root: type[RivermouthError] = RivermouthError) -> Iterator[type[RivermouthError]]:
    yield root
    for each in root.__subclasses__():
        yield from every_error(each)


def test_the_help_lists_the_exit_codes_that_a_command_can_return(rivermouth: Rivermouth) -> None:
    some_failed = exit_code([Ended(None), Ended(RivermouthError("it"))])
    returned = {0, NOT_OK, some_failed, *(each.exit_code for each in every_error())}
    listed = rivermouth("--help").out.partition("Exit codes:")[2]
    assert {int(each) for each in re.findall(r"\d", listed)} == returned


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stauts"], "No such command 'stauts'"),
        (["run"], "Missing argument 'CONFIG'"),
        (["run", "lake.yml", "--onse"], "No such option: --onse"),
        (["sql", "lake.yml"], "Missing argument 'STATEMENT'"),
        (["broker", "--port", "70000"], "--port"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what(
    rivermouth: Rivermouth, arguments: list[str], said: str
) -> None:
    ended = rivermouth(*arguments)
    assert ended.code == 2
    assert said in ended.err
    assert ended.out == ""


def test_a_sound_file_is_valid(rivermouth: Rivermouth, lake_yml: Path) -> None:
    ended = rivermouth("validate", lake_yml)
    assert ended.code == 0
    assert "OK:" in ended.out
    assert "bids, orders" in ended.out


@pytest.mark.parametrize("command", ["validate", "run", "status", "verify", "offsets rebuild"])
def test_every_command_refuses_a_bad_file_with_all_its_problems(
    rivermouth: Rivermouth, lake_yml: Path, command: str
) -> None:
    lake_yml.write_text(
        CONFIG.replace("format: json}", "formt: json}", 1).replace("[order_id]", "[ordr_id]"),
        encoding="utf-8",
    )
    ended = rivermouth(*command.split(), lake_yml)
    assert ended.code == 2
    assert ended.out == ""
    lines = ended.err.splitlines()
    assert any(re.search(r'lake\.yml:6:\d+ RM104 .*did you mean "format"', each) for each in lines)
    assert any(re.search(r'lake\.yml:12:\d+ RM114 .*did you mean "order_id"', x) for x in lines)


def test_a_file_that_is_not_there_is_exit_code_2(rivermouth: Rivermouth, tmp_path: Path) -> None:
    ended = rivermouth("validate", tmp_path / "no.yml")
    assert ended.code == 2
    assert "RM101" in ended.err


@pytest.mark.parametrize("command", ["run", "verify"])
def test_a_pipeline_that_is_not_configured_is_exit_code_2_with_a_suggestion(
    rivermouth: Rivermouth, lake_yml: Path, command: str
) -> None:
    ended = rivermouth(command, lake_yml, "--select", "bids,ordres,x")
    assert ended.code == 2
    lines = ended.err.splitlines()
    assert lines == [
        '--select: there is no pipeline "ordres" — did you mean "orders"? Configured: bids, orders',
        '--select: there is no pipeline "x". Configured: bids, orders',
    ]


@pytest.mark.parametrize("pipeline", ["nobody", "no,one", "", " "])
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("replay", ["--from", "earliest"]),
        ("resume", ["--accept", "reset"]),
        ("accept-deletes", ["--versions", "1"]),
    ],
)
def test_an_argument_that_names_no_pipeline_is_not_taken_for_an_option(
    rivermouth: Rivermouth, lake_yml: Path, command: str, words: list[str], pipeline: str
) -> None:
    ended = rivermouth(command, lake_yml, pipeline, *words)
    assert (ended.code, ended.out) == (2, "")
    said = f'PIPELINE: there is no pipeline "{pipeline.strip()}"'
    assert ended.err == f"{said}. Configured: bids, orders\n"


def test_what_cannot_be_checked_is_named_and_only_with_strict_a_failure(
    rivermouth: Rivermouth, lake_yml: Path
) -> None:
    """No table is there yet: nothing is wrong, and nothing is proved."""
    ended = rivermouth("verify", lake_yml)
    assert ended.code == 0
    assert "bids: not checked: there is no table yet" in ended.out
    assert ended.out.splitlines()[-2:] == [
        "  not checked: 2 tables",
        "OK: 0 records read again, 0 missing, 0 duplicated",
    ]
    strict = rivermouth("verify", lake_yml, "--strict")
    assert strict.code == 3
    assert strict.out.splitlines()[-1] == "FAILED: bids, orders"
    told = json.loads(rivermouth("verify", lake_yml, "--strict", "--json").out)
    assert told["ok"] is False
    assert told["pipelines"][0]["not_checked"] == {"tables": 1}
    assert told["pipelines"][0]["unchecked"] == ["there is no table yet"]


def test_since_takes_last_or_a_time_and_without_a_proof_all_is_read(
    rivermouth: Rivermouth, lake_yml: Path
) -> None:
    refused = rivermouth("verify", lake_yml, "--since", "yesterday")
    assert refused.code == 2
    assert "--since yesterday: write last, a time with its zone" in refused.err
    assert rivermouth("verify", lake_yml, "--since", "last", "--no-record").code == 0
    told = json.loads(rivermouth("verify", lake_yml, "--since", "1d", "--json").out)
    assert [each["since"] for each in told["pipelines"]] == [None, None]
    assert [each["proof"] for each in told["pipelines"]] == [None, None]


def test_config_schema_is_the_json_schema(rivermouth: Rivermouth) -> None:
    assert json.loads(rivermouth("config", "schema").out) == json_schema()


def test_sql_refuses_what_does_not_read_with_exit_code(
    rivermouth: Rivermouth, lake_yml: Path
) -> None:
    ended = rivermouth("sql", lake_yml, "DROP TABLE bronze.bids")
    assert ended.code != 0
    assert "only statements that read" in ended.err


def test_sql_answers_for_people_and_for_machines(rivermouth: Rivermouth, lake_yml: Path) -> None:
    assert "forty" in rivermouth("sql", lake_yml, "SELECT 40 AS forty").out
    answer = rivermouth("sql", lake_yml, "SELECT 40 AS forty", "--json").out
    assert json.loads(answer) == [{"forty": 40}]


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def with_blocked(*modules: str) -> str:
    """Code that runs the command where these modules are not installed."""
    return (
        f"import sys; sys.modules.update(dict.fromkeys({modules!r}))\n"
        "from rivermouth.cli.app import main\n"
        "main(sys.argv[1:])"
    )


@pytest.mark.parametrize("command", ["--help", "validate", "config schema"])
def test_what_needs_no_engine_starts_where_none_is_installed(command: str, lake_yml: Path) -> None:
    file = [lake_yml] if command == "validate" else []
    ended = python(with_blocked(*HEAVY), *command.split(), *file)
    assert ended.returncode == 0, ended.stderr


def test_the_help_does_not_even_read_the_configuration_room() -> None:
    code = (
        "import sys\n"
        "from rivermouth.cli.app import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print('pydantic' in sys.modules, 'rich' in sys.modules)"
    )
    assert python(code).stdout.splitlines()[-1] == "False False"


def test_sql_and_rebuild_start_where_pyspark_is_not_installed(lake_yml: Path) -> None:
    for command in (["sql", lake_yml, "SELECT 1"], ["offsets", "rebuild", lake_yml]):
        ended = python(with_blocked("pyspark", "delta"), *command)
        assert ended.returncode == 0, ended.stderr


def test_run_without_the_extra_says_which_one_and_is_exit_code_2(lake_yml: Path) -> None:
    ended = python(with_blocked("pyspark"), "run", lake_yml)
    assert ended.returncode == 2
    assert ended.stderr.startswith("RM206 ")
    assert "pip install 'rivermouth[local]'" in ended.stderr


class TwoTopics:
    """Stands for Kafka: it tells how many partitions a topic has."""

    def __init__(self, options: Mapping[str, str], timeout_s: float) -> None: ...

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        return {each: {"bids": 2_000, "orders": 100}[each] for each in topics}


@pytest.mark.parametrize(
    ("section", "own"),
    [
        ("", {}),
        ("spark: {spark.x: 007}\n", {"spark.x": "007"}),
        (f"spark: {{{CAPACITY}: 9, spark.x: true}}\n", {CAPACITY: "9", "spark.x": "true"}),
    ],
    ids=["none", "further ones", "one of ours"],
)
def test_the_session_of_a_run_has_the_memory_for_its_partitions_and_the_settings_of_the_file(
    lake_yml: Path,
    monkeypatch: pytest.MonkeyPatch,
    section: str,
    own: Mapping[str, str],
) -> None:
    lake_yml.write_text(CONFIG + section, encoding="utf-8")
    given: list[Mapping[str, str]] = []

    def started(scratch: Path, settings: Mapping[str, str]) -> NoReturn:
        given.append(settings)
        raise SetupError("no Spark here")

    monkeypatch.setattr("rivermouth.kafka.client.Kafka", TwoTopics)
    monkeypatch.setattr("rivermouth.local.machine.memory_mb", lambda: 24_000)
    monkeypatch.setattr("rivermouth.local.session.start_session", started)

    with pytest.raises(SetupError, match="no Spark here"):
        start_spark(load(lake_yml), None, unresolved, ["bids"])

    assert given == [{**heap_settings([2_000], 24_000), **own}]
    assert given[0][MEMORY] == "6465m", "more than a session has that knows of no partition"


def test_an_error_that_nobody_foresaw_is_one_line_and_its_traceback_is_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIVERMOUTH_SCRATCH", str(tmp_path / "scratch"))

    def broken(*arguments: object, **options: object) -> NoReturn:
        raise ZeroDivisionError("one\ntwo")

    with pytest.raises(SystemExit) as left:
        main([], broken)

    assert left.value.code == 1
    said = capsys.readouterr().err
    assert said == (
        f"unexpected ZeroDivisionError: one. The traceback is in {scratch_root()}/errors.log\n"
    )
    assert "in broken" in (scratch_root() / "errors.log").read_text(encoding="utf-8")


def test_an_interrupt_is_exit_code_130_without_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*arguments: object, **options: object) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        main([], interrupted)

    assert left.value.code == 130
    assert capsys.readouterr().err == ""
