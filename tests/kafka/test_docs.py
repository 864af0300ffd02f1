"""What README and the pages tables, reading, replay, transform and delivery show is run here, word
for word.

Only the place of the warehouse is put in: the page says ``/data/lake``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from rivermouth.local.broker import Broker
from tests.commands import command, script
from tests.lake import Lake, bid, order
from tests.pages import page, section, snippets
from tests.processes import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

README = (ROOT / "README.md").read_text(encoding="utf-8")
# What is said of key and headers needs a table that has them, see test_metadata.
OF_METADATA = "## Message key and headers"
TABLES = page("tables").replace(section(page("tables"), OF_METADATA), "")
# What follows needs a session, see test_reading.
READING = page("reading").partition("\n## Ranges as values")[0]
REPLAY, TRANSFORM, DELIVERY = (page(each) for each in ("replay", "transform", "delivery"))
OPTIONAL = ("duckdb", "pandas")


def commands(text: str) -> list[str]:
    lines = (line for block in snippets(text, "sh") for line in block.splitlines())
    return [line for line in lines if line.startswith("rivermouth ")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, rivermouth_broker: Broker) -> Lake:
    """The README's configuration and topics, with a few records in them, good and bad."""
    lake = Lake(tmp_path_factory.mktemp("docs"), rivermouth_broker.bootstrap_servers)
    [config] = snippets(README, "yaml")
    (lake.folder / "lake.yml").write_text(config, encoding="utf-8")
    for topic in ("bids", "orders"):
        lake.topic(topic, 2)
    lake.produce("bids", [(None, bid(i % 5, i), i % 2) for i in range(20)])
    lake.produce("bids", [(None, b"{oops", 0)])
    lake.produce("orders", [(b"%d" % i, order(i, "open", i), i % 2) for i in range(6)])
    return lake


def run(lake: Lake, spark: SparkSession, line: str, folder: Path | None = None) -> str:
    """What a command of a page says, in the folder of the lake, or in another one."""
    name, *words = shlex.split(line, comments=True)
    assert name == "rivermouth"
    environ = {"KAFKA_BOOTSTRAP": lake.servers}
    done = command(*words, spark=spark, environ=environ, folder=folder or lake.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(lake: Lake, code: str) -> str:
    """What code of a page says, in a process of its own in the folder of the lake."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=lake.folder,
        env={**os.environ, "KAFKA_BOOTSTRAP": lake.servers},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def placed(lake: Lake, snippet: str) -> str:
    return snippet.replace("/data/lake", str(lake.warehouse))


@pytest.fixture(scope="module")
def readme_answers(lake: Lake, rivermouth_spark: SparkSession) -> dict[str, str]:
    """What each command of the README said, in the order of the page."""
    return {line: run(lake, rivermouth_spark, line) for line in commands(README)}


def test_the_commands_of_the_readme_lead_from_topics_to_an_answer(
    readme_answers: dict[str, str],
) -> None:
    answers = {line.split()[1]: answer for line, answer in readme_answers.items()}
    assert [*answers] == ["doctor", "run", "status", "topic", "report", "verify", "sql", "bundle"]
    assert re.search(r"^open +6$", answers["sql"], re.MULTILINE)
    assert "databricks.yml" in answers["bundle"]


def test_the_python_of_the_readme_says_what_the_commands_say(
    lake: Lake, readme_answers: dict[str, str], rivermouth_spark: SparkSession
) -> None:
    assert readme_answers
    [code] = snippets(README, "python")
    environ = {"KAFKA_BOOTSTRAP": lake.servers}
    done = script(code, spark=rivermouth_spark, environ=environ, folder=lake.folder)
    assert done.stderr == ""
    assert "\nOK: 0 records\n" in done.stdout
    assert re.search(r"^orders +OK ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("line", [*commands(TABLES), *commands(READING), *commands(REPLAY)])
def test_a_command_of_a_page_answers(
    line: str, lake: Lake, readme_answers: dict[str, str], rivermouth_spark: SparkSession
) -> None:
    assert readme_answers
    assert len(run(lake, rivermouth_spark, line).splitlines()) >= 3


@pytest.mark.thorough
def test_the_sql_of_the_page_runs_in_spark_and_the_view_hides_what_does_not_count(
    lake: Lake, readme_answers: dict[str, str], rivermouth_spark: SparkSession
) -> None:
    assert readme_answers
    quarantine = lake.path("bronze.bids_quarantine")
    rows = rivermouth_spark.read.format("delta").load(str(quarantine))
    of_a_dead_driver = rows.selectExpr("* except (commit)", "'no such commit' AS commit")
    of_a_dead_driver.write.format("delta").mode("append").save(str(quarantine))

    counts = [rivermouth_spark.sql(placed(lake, each)).count() for each in snippets(TABLES, "sql")]

    assert rows.count() == 2
    statuses, versions, view, counted = counts
    assert (statuses, versions, view) == (1, 3, 0)
    assert counted == 1, "of two rows in quarantine one is of a commit that does not stand"


@pytest.mark.parametrize("snippet", [*snippets(TABLES, "python"), *snippets(READING, "python")])
def test_the_python_of_a_page_runs(
    snippet: str, lake: Lake, readme_answers: dict[str, str]
) -> None:
    assert readme_answers
    for name in OPTIONAL:
        if f"import {name}\n" in snippet:
            pytest.importorskip(name)
    assert python(lake, placed(lake, snippet)).strip()


@pytest.mark.thorough
def test_own_code_of_the_page_runs_and_is_proved(
    lake: Lake, readme_answers: dict[str, str], rivermouth_spark: SparkSession
) -> None:
    assert readme_answers
    select, *others = snippets(TRANSFORM, "yaml")
    functions = snippets(TRANSFORM, "python")
    (lake.folder / "shop.py").write_text("".join(functions), encoding="utf-8")
    together = select + "".join(each.partition("pipelines:\n")[2] for each in others)
    (lake.folder / "own.yml").write_text(together, encoding="utf-8")

    # In another folder: the function is found beside the file.
    run(lake, rivermouth_spark, f"rivermouth run {lake.folder.name}/own.yml", lake.folder.parent)

    said = run(lake, rivermouth_spark, "rivermouth verify own.yml")
    assert "10 records without a row: the transform left them out" in said
    assert sorted({row["twice"] for row in lake.rows("silver.prices")})[:2] == [0, 2]
    assert {row["price"] for row in lake.rows("silver.large")} == {*range(10, 20)}
    hours = lake.rows("silver.hours")
    assert len(hours) == 2 * len(lake.rows("silver.prices"))
    assert {row["passed"] for row in hours} == {0, 1}
    assert "20 exploded records" in said


@pytest.mark.thorough
def test_the_pipelines_of_the_page_on_delivery_run_and_are_proved_and_its_queries_answer(
    tmp_path: Path, rivermouth_broker: Broker, rivermouth_spark: SparkSession
) -> None:
    """Over twelve bids and a bad record; the queries give what plain Python gives."""
    lake = Lake(tmp_path, rivermouth_broker.bootstrap_servers)
    lake.topic("delivered_bids", 2)
    lake.produce("delivered_bids", [(None, bid(i % 3, i), i % 2) for i in range(12)])
    lake.produce("delivered_bids", [(None, b"{oops", 0)])
    pipelines: dict[str, Any] = {}
    for text in snippets(DELIVERY, "yaml"):
        pipelines |= YAML(typ="safe").load(text.replace("[bids]", "[delivered_bids]"))["pipelines"]
    lake.configure(**pipelines)

    def answer(*words: str) -> Any:
        done = lake.command(*words, "--json", spark=rivermouth_spark)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    answer("run")
    totals, repeats = re.findall(r'^rivermouth sql lake.yml "(.*)"$', DELIVERY, re.MULTILINE)
    found = answer("sql", totals)
    spent = {each: sum(n for n in range(12) if n % 3 == each) for each in range(3)}
    assert {row["auction"]: row["spent"] for row in found} == spent
    assert {(row["n"], row["bidders"]) for row in found} == {(4, 1)}
    assert answer("sql", repeats) == [{"repeats": 9}]
    proofs = answer("verify", "--strict")["pipelines"]
    assert {each["name"]: each.get("repeated") for each in proofs}["first_bids"] == 9


PAGES = ["README.md", *(f"docs/{each}.md" for each in ("tables", "reading", "replay", "transform"))]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_links_to_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_readme_names_only_targets_that_the_makefile_has() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"^make ([\w-]+)", README, re.MULTILINE)
    assert named == ["demo", "test", "test-all"]
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in named)
