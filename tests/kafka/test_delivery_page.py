"""``docs/delivery.md``: its configurations run on real parts, and its queries answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from rivermouth.cli.app import main
from rivermouth.local.broker import Broker
from tests.lake import Lake, bid

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PAGE = (Path(__file__).parents[2] / "docs" / "delivery.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
QUERIES = re.findall(r'^rivermouth sql lake.yml "(.*)"$', PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def file(
    tmp_path_factory: pytest.TempPathFactory,
    rivermouth_broker: Broker,
    rivermouth_spark: SparkSession,
) -> Path:
    """Both pipelines of the page in one file, after a run over twelve bids and a bad record."""
    lake = Lake(tmp_path_factory.mktemp("delivery"), rivermouth_broker.bootstrap_servers)
    lake.topic("delivered_bids", 2)
    lake.produce("delivered_bids", [(None, bid(i % 3, i), i % 2) for i in range(12)])
    lake.produce("delivered_bids", [(None, b"{oops", 0)])
    pipelines: dict[str, Any] = {}
    for text in FILES:
        pipelines |= YAML(typ="safe").load(text.replace("[bids]", "[delivered_bids]"))["pipelines"]
    lake.configure(**pipelines)
    done = lake.command("run", spark=rivermouth_spark)
    assert done.returncode == 0, done.stdout + done.stderr
    return lake.file


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    assert ended.value.code == 0
    rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return rows


@pytest.mark.thorough
def test_the_queries_of_the_page_give_what_plain_python_gives(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    totals, repeats = QUERIES
    found = answer(capsys, "sql", str(file), totals)
    spent = {each: sum(n for n in range(12) if n % 3 == each) for each in range(3)}
    assert {row["auction"]: row["spent"] for row in found} == spent
    assert {(row["n"], row["bidders"]) for row in found} == {(4, 1)}
    [row] = answer(capsys, "sql", str(file), repeats)
    assert row == {"repeats": 9}


@pytest.mark.thorough
def test_both_are_proved(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(file), "--strict", "--json"])
    assert ended.value.code == 0, capsys.readouterr().out
    proofs = json.loads(capsys.readouterr().out)["pipelines"]
    assert {each["name"]: each.get("repeated") for each in proofs}["first_bids"] == 9
