"""Every kind of problem, as the user sees it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rivermouth.config import codes, load
from rivermouth.errors import ConfigError

Problems = Callable[..., list[str]]

TABLE = (Path(__file__).parent / "problems.txt").read_text(encoding="utf-8")
CASES = re.findall(r"^### (.+?)\n(.*?)^=>\n(.*?)(?=\n###|\Z)", TABLE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("text", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_faulty_file_is_refused_with_all_its_problems(
    text: str, expected: str, problems: Problems
) -> None:
    assert problems(text, {"HIDDEN": "hunter 2"}) == expected.splitlines()


def test_the_table_of_cases_covers_every_code() -> None:
    assert len(CASES) > 60
    shown = {code for case in CASES for code in re.findall(r"RM1\d\d", case[2])}
    assert shown == set(codes())


BOMB = ", ".join("x" * 10)
PAIRS = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")]
UNREADABLE = [
    pytest.param("", "1:1 RM101 the file is empty", id="empty"),
    pytest.param("a: \x01", "1:4 RM102 not valid YAML: a character", id="control character"),
    pytest.param("a: " + "[" * 5000, "1:1 RM102 not valid YAML: it is nested", id="deep"),
    pytest.param("%YAML 9.9\n---\na: 1", "1:1 RM102 not valid YAML", id="YAML of the future"),
    pytest.param(
        f"a: &a [{BOMB}]\n"
        + "".join(f"{new}: &{new} [{BOMB.replace('x', '*' + old)}]\n" for old, new in PAIRS),
        "RM102 the file is nested too deeply or repeats aliases",
        id="alias bomb",
    ),
]


@pytest.mark.takes_long("deep")
@pytest.mark.parametrize(("text", "expected"), UNREADABLE)
def test_text_that_cannot_be_read_gives_one_line(
    text: str, expected: str, problems: Problems
) -> None:
    (line,) = problems(text)
    assert expected in line


def test_a_file_that_is_not_there_gives_one_line(tmp_path: Path) -> None:
    file = tmp_path / "none.yml"
    with pytest.raises(ConfigError) as refused:
        load(file, {})
    assert refused.value.problems == (f"{file} RM101 there is no such file — check the path",)


def test_a_folder_gives_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, {})
    assert refused.value.problems == (f"{tmp_path} RM101 this is a folder — name the file in it",)


def test_a_file_that_is_not_utf8_gives_the_place_of_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "latin.yml"
    file.write_bytes(b"version: 1\n# caf\xe9\n")
    with pytest.raises(ConfigError) as refused:
        load(file, {})
    assert refused.value.problems == (f"{file}:2:6 RM101 the file is not UTF-8 — save it as UTF-8",)


def test_no_problem_shows_a_secret(lake: str, problems: Problems) -> None:
    secret = "hunter2hunter2"
    for wrong in (
        f"*{secret}",
        f"[{secret}",
        f"pa${{foo:{secret}}}",
        f"{{a: {secret}}}",
        "${env:P}",
    ):
        text = lake.replace('"k:9092"', f"k, sasl.password: {wrong}")
        assert secret not in "\n".join(problems(text, {"P": secret}))


FROM_ENV = [
    pytest.param('start: "${env:JSON}"', "id INT", "[id]", "RM118", id="a topic in start"),
    pytest.param("start: {huntr: {0: 1}}", "id INT", "[id]", "RM118", id="a topic to suggest"),
    pytest.param("key: json", '"${env:DDL}"', "[huntr]", "RM114", id="a column to suggest"),
    pytest.param("key: json", '"${env:DDL}"', "[zzz]", "RM114", id="columns to list"),
    pytest.param("key: json", '"${env:DDL}, a b"', "[id]", "RM112", id="a type"),
]


@pytest.mark.parametrize(("setting", "schema", "keys", "code"), FROM_ENV)
def test_no_problem_shows_what_a_variable_holds(
    setting: str, schema: str, keys: str, code: str, problems: Problems, lake: str
) -> None:
    environ = {"JSON": '{"hunt": {"0": 1}}', "NAME": "hunter", "DDL": "hunter INT"}
    text = lake.replace("topics: [t]", 'topics: ["${env:NAME}"], ' + setting)
    text = text.replace("id BIGINT, at TIMESTAMP", schema)
    text = text.replace("{table: s.t}", f"{{table: s.t, mode: upsert, keys: {keys}}}")
    (line,) = problems(text, environ)
    assert code in line
    assert "hunt" not in line.replace("huntr", "")


def test_a_topic_from_a_variable_that_two_pipelines_read_is_not_shown(
    lake: str, problems: Problems
) -> None:
    text = lake.replace("[t]", '["${env:NAME}"]')
    text += text.partition("pipelines:\n")[2].replace("  p:", "  q:")
    (line,) = problems(text, {"NAME": "hunter"})
    assert "RM120 pipelines.q.source.topics[0] is ${env:NAME}, which" in line


def test_codes_are_consecutive_and_explained() -> None:
    assert list(codes()) == [f"RM{101 + index}" for index in range(len(codes()))]
    assert all(codes().values())
