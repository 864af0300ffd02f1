"""What the bundle's dashboard and alerts ask, put to Spark SQL over tables in folders.

    python -m tests.bundle.asking CONFIG ANSWERS.json

writes what every widget of the dashboard shows for the tables of a configuration.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from rivermouth.config import OFFSETS_TABLE, Config, load
from rivermouth.local.scratch import scratch_root
from rivermouth.local.session import start_session
from tests.bundle.bundle_files import root_file
from tests.folders import folder_of_config

RESOURCES = Path(__file__).parents[2] / "resources"

Row = dict[str, Any]


@dataclass(frozen=True)
class Widget:
    """What one widget asks, as one statement, and the columns that it then draws."""

    name: str
    statement: str
    encoded: frozenset[str]


def dashboard() -> dict[str, Any]:
    """The dashboard, as it is deployed."""
    found: dict[str, Any] = json.loads((RESOURCES / "overview.lvdash.json").read_text("utf-8"))
    return found


def widgets() -> Iterator[Widget]:
    """Every widget that draws data, on any page."""
    whole = dashboard()
    datasets = {each["name"]: "".join(each["queryLines"]) for each in whole["datasets"]}
    for page in whole["pages"]:
        for each in (placed["widget"] for placed in page["layout"]):
            for question in each.get("queries", ()):
                query = question["query"]
                fields = [f"{each['expression']} AS `{each['name']}`" for each in query["fields"]]
                grouped = "" if query["disaggregated"] else " GROUP BY ALL"
                dataset = datasets[query["datasetName"]]
                statement = f"SELECT {', '.join(fields)} FROM (\n{dataset}){grouped}"
                encoded = frozenset(_field_names(each["spec"]["encodings"]))
                yield Widget(each["name"], statement, encoded)


def _field_names(encodings: object) -> Iterator[str]:
    if isinstance(encodings, dict):
        if "fieldName" in encodings:
            yield encodings["fieldName"]
        encodings = list(encodings.values())
    if isinstance(encodings, list):
        for each in encodings:
            yield from _field_names(each)


@dataclass(frozen=True)
class Alert:
    """An alert with its variables filled in."""

    statement: str
    evaluation: Mapping[str, Any]

    def state(self, rows: list[Row]) -> str:
        """What the workspace makes of an answer; covers the operator that our alerts use."""
        if not rows:
            return str(self.evaluation["empty_result_state"])
        source = self.evaluation["source"]
        assert (source["aggregation"], self.evaluation["comparison_operator"]) == (
            "MAX",
            "GREATER_THAN",
        )
        worst = max(row[source["name"]] for row in rows)
        limit = float(self.evaluation["threshold"]["value"]["double_value"])
        return "TRIGGERED" if worst > limit else "OK"


def alert(name: str, schema: str, **variables: object) -> Alert:
    """The alert of ``resources/<name>.alert.yml`` on tables in ``schema`` of Spark's catalog.

    What ``variables`` do not say, the bundle's own defaults do.
    """
    values = {
        **{f"var.{key}": each.get("default") for key, each in root_file()["variables"].items()},
        "var.catalog": "spark_catalog",
        "resources.schemas.rivermouth.name": schema,
        **{f"var.{key}": value for key, value in variables.items()},
    }
    loaded = YAML(typ="safe").load(RESOURCES / f"{name}.alert.yml")
    found = loaded["resources"]["alerts"][name]

    def filled(text: str) -> str:
        return re.sub(r"\$\{([^}]+)\}", lambda each: str(values[each[1]]), text)

    threshold = found["evaluation"]["threshold"]["value"]
    threshold["double_value"] = filled(threshold["double_value"])
    return Alert(filled(found["query_text"]), found["evaluation"])


def register(session: SparkSession, config: Config, schema: str) -> None:
    """Put the configuration's tables into ``schema``, under the names the queries use."""
    targets = [each.target.table for each in config.pipelines.values()]
    session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for table in (OFFSETS_TABLE, *targets, *(each.quarantine for each in targets)):
        path = table.path(folder_of_config(config))
        if path.exists():
            session.sql(f"CREATE TABLE {schema}.{table.name} USING delta LOCATION '{path}'")


def ask(session: SparkSession, statement: str) -> list[Row]:
    """The rows of the answer."""
    return [row.asDict() for row in session.sql(statement).collect()]


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    return float(value) if isinstance(value, Decimal) else value


def main(config: Path, answers: Path) -> None:
    """Ask for every widget and write the answers for ``tools/draw_dashboard.py``."""
    session = start_session(scratch_root())
    register(session, load(config), "shown")
    session.sql("USE shown")
    found = {}
    for each in widgets():
        table = session.sql(each.statement)
        rows = [[_as_json(value) for value in row] for row in table.collect()]
        found[each.name] = {"columns": table.columns, "rows": rows}
    answers.write_text(json.dumps(found, indent=1), "utf-8")
    session.stop()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
