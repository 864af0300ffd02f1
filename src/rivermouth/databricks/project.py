"""Writes the project of ``bundle init``, from the bundle that deploys rivermouth itself.

That bundle builds a wheel from this source. A new project names the released package instead,
and has its own name, schema and uuid.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from rivermouth import __version__
from rivermouth.config import Column, Config, Pipeline, TableName, load
from rivermouth.config.encoding import Framing
from rivermouth.config.pipeline import check_platform
from rivermouth.config.platforms import CLASSIC
from rivermouth.errors import ScaffoldRefused

SCHEMA = "schema_of_the_bundle"
"""A placeholder for the bundle's schema, whose name differs between targets."""


def quarantines(config: Config, schema: str) -> list[str]:
    """The quarantine tables of a configuration that was loaded with ``SCHEMA``, in SQL.

    Each table is there once, since two pipelines may share it. A table in the bundle's schema
    is named without a schema, since the dashboard sets that one. In any other schema name
    ``schema`` replaces ``SCHEMA``.
    """
    tables = dict.fromkeys(each.target.table.quarantine for each in config.pipelines.values())
    return [_name(each, schema) for each in tables]


def _name(table: TableName, schema: str) -> str:
    if table.schema == SCHEMA:
        return table.name
    return f"`{table.schema.replace(SCHEMA, schema)}`.`{table.name}`"


def over(dashboard: str, tables: Iterable[str]) -> str:
    """The text of ``dashboard`` with ``tables`` in its dataset ``quarantine``."""
    whole = json.loads(dashboard)
    (dataset,) = (each for each in whole["datasets"] if each["name"] == "quarantine")
    lines = dataset["queryLines"]
    first, last = lines.index("WITH held AS (\n") + 1, lines.index(")\n")
    selects = [f"  SELECT pipeline, commit, code, reason FROM {each}\n" for each in tables]
    lines[first:last] = "  UNION ALL\n".join(selects).splitlines(keepends=True)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


_EACH = 2
_DAYS = timedelta(days=40)
"""Times lie so far apart that windows hold one each."""


def samples(config: Config) -> Mapping[str, str]:
    """By pipeline: lines of JSON, each of which becomes a row of its own.

    A pipeline that sends its records, or has code of its own, has none: what becomes of them only
    their owner knows. Nor has one whose records are no objects of JSON with the columns as fields.
    """
    found: dict[str, str] = {}
    for place, (name, pipeline) in enumerate(config.pipelines.items()):
        if _takes_columns(pipeline) and not (pipeline.made_by or pipeline.shape.sends):
            numbers = range(place * _EACH + 1, place * _EACH + 1 + _EACH)
            found[name] = "".join(f"{record(pipeline.columns, n)}\n" for n in numbers)
    return found


def _takes_columns(pipeline: Pipeline) -> bool:
    """Whether its records are objects of JSON with the columns as fields."""
    source = pipeline.source
    bare = source.format == "json" and pipeline.framing is Framing.NONE
    return bare and not pipeline.fields and source.envelope is None


def record(columns: tuple[Column, ...], number: int) -> str:
    """One record. What is nested is left out, so it is null."""
    return json.dumps({each.name: value(each, number) for each in columns if each.primitive})


def value(column: Column, number: int) -> object:
    """What JSON has for a value of the column; another one for each small number."""
    if column.kind == "DECIMAL":
        return _decimal(column.type, number)
    day = date(2026, 1, 1) + number * _DAYS
    values: dict[str, object] = {
        **dict.fromkeys(("SMALLINT", "INT", "BIGINT"), number),
        "TINYINT": number % 128,
        "BOOLEAN": number % 2 == 0,
        "FLOAT": number + 0.5,
        "DOUBLE": number + 0.5,
        "BINARY": b64encode(str(number).encode()).decode(),
        "DATE": str(day),
        "TIMESTAMP": f"{day}T12:00:00Z",
        "TIMESTAMP_NTZ": f"{day}T12:00:00",
    }
    return values.get(column.kind, f"{column.name} {number}")


def _decimal(kind: str, number: int) -> object:
    """The last digit of the number, at the last place of a type that has none before its point."""
    digits, _, behind = kind.partition("(")[2].rstrip(")").partition(",")
    last = number % 10
    return last if int(digits) > int(behind) else float(f"{last}e-{behind}")


_REGISTRY = """\
schema_registry:
  url: https://registry:8081  # write the address of yours
  # For a login write basic.auth.user.info: ${secret:${env:SECRET_SCOPE}/schema-registry-login}
"""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_HERE = Path(__file__).parent
# In a wheel the files of the bundle are in the package, in a source tree at its root.
_BUNDLE = next(
    each for each in (_HERE / "project", _HERE.parents[2]) if (each / "databricks.yml").exists()
)
_DASHBOARD = "resources/overview.lvdash.json"
PASSED = {
    "KAFKA_BOOTSTRAP": "broker:9092",
    "CATALOG": "main",
    "SCHEMA": SCHEMA,
    "VOLUME": "state",
    "SECRET_SCOPE": "scope",
}
"""The variables that the jobs pass with --set, and placeholders for their values."""
_REQUIRED = ("KAFKA_BOOTSTRAP", "CATALOG", "SCHEMA")  # a configuration must read these
_TEMPLATES = {
    "README.md": "README.md",
    "Makefile": "Makefile",
    "requirements.txt": "requirements.txt",
    "gitignore": ".gitignore",
    "ci.yml": ".github/workflows/ci.yml",
    "test_project.py": "tests/test_project.py",
}


def scaffold(folder: Path, config: Path | None = None, form: str = "json") -> list[Path]:
    """Write a project into ``folder``, which is new or empty; return its files, relative, sorted.

    The project has the name of the folder. ``config`` is its configuration (None: an example whose
    records have the format ``form``), which may read the variables ``PASSED``. Raises
    ScaffoldRefused, ConfigError for a configuration that no job could load, and SinkUnsupported for
    a pipeline that no job could run.
    """
    name = folder.resolve().name.lower().replace(" ", "-")
    if not _NAME.fullmatch(name):
        expected = "a-z, 0-9, _ and -, a letter first"
        raise ScaffoldRefused(
            "the name of the folder is not a project name", expected=expected, found=name
        )
    if folder.exists() and any(folder.iterdir()):
        raise ScaffoldRefused("the folder is not empty", where=str(folder))
    with TemporaryDirectory() as place:
        given = config or _example(form, Path(place))
        loaded, text = load(given, {**os.environ, **PASSED}), given.read_text(encoding="utf-8")
    texts = dict(_texts(name, extras_of(loaded)))
    texts["config/rivermouth.yml"] = text if config is None else _deployable(text)
    if config is not None:
        for each in loaded.pipelines.values():  # the job ingest is on the one that allows most
            check_platform(each, CLASSIC)
        tables = quarantines(loaded, schema_of(name))
        texts[_DASHBOARD] = over(texts[_DASHBOARD], tables)
    texts |= {f"tests/records/{each}.jsonl": text for each, text in samples(loaded).items()}
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    return sorted(Path(each) for each in texts)


def _example(form: str, folder: Path) -> Path:
    """The configuration of the example, whose records have the format, as a file."""
    text = (_BUNDLE / "config" / "rivermouth.yml").read_text(encoding="utf-8")
    if form != "json":
        text = text.replace("format: json", f"format: {form}")
        text = text.replace("\nwarehouse:", f"\n{_REGISTRY}warehouse:")
    file = folder / "rivermouth.yml"
    file.write_text(text, encoding="utf-8")
    return file


def extras_of(config: Config) -> tuple[str, ...]:
    """The extras of the package that its pipelines need on a cluster."""
    named = {each.source.format for each in config.pipelines.values()}
    named |= {each.source.key or "" for each in config.pipelines.values()}
    asked = (("registry", config.schema_registry is not None), ("protobuf", "protobuf" in named))
    return tuple(extra for extra, needed in asked if needed)


def package(*extras: str) -> str:
    """The released package, as a requirement."""
    asked = f"[{','.join(extras)}]" if extras else ""
    return f"rivermouth{asked}=={__version__}"


def _deployable(config: str) -> str:
    """The text as it is. Raises ScaffoldRefused if it does not read every required variable."""
    unread = [name for name in _REQUIRED if f"${{env:{name}" not in config]
    if unread:
        raise ScaffoldRefused(
            "the configuration does not read all variables that the jobs pass",
            expected=", ".join(f"${{env:{name}}}" for name in _REQUIRED),
            found=f"no {', '.join(unread)}",
            remedy="Use them in bootstrap.servers and in warehouse: {catalog, schema, volume}",
        )
    return config


def jobs() -> list[Path]:
    """The scripts of the jobs."""
    return sorted(_BUNDLE.glob("jobs/*.py"))


def _texts(name: str, extras: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The path and the text of every file of a project with that name."""
    bundle = (_BUNDLE / "databricks.yml").read_text(encoding="utf-8")
    yield "databricks.yml", own_bundle(bundle, name)
    for kind in ("resources/*", "jobs/*.py", "config/*.yml"):
        for file in sorted(_BUNDLE.glob(kind)):
            text = file.read_text(encoding="utf-8")
            yield file.relative_to(_BUNDLE).as_posix(), released(text, package(*extras))
    for template, target in _TEMPLATES.items():
        text = (_HERE / "templates" / template).read_text(encoding="utf-8")
        local = package("local", *extras)
        for mark, value in {"name": name, "schema": schema_of(name), "local": local}.items():
            text = text.replace(f"@{mark}@", value)
        yield target, text


def own_bundle(text: str, name: str) -> str:
    """``databricks.yml`` for another project: its name, a new uuid, no wheel to build.

    In the file the names of paths, jobs and the scope come from the bundle's name. That of the
    schema does not, since a schema name in a configuration may not contain ``-``.
    """
    text = re.sub(r"\nartifacts:\n(  .*\n)+", "\n", text)
    text = re.sub(r"\nexperimental:\n(  .*\n)+", "\n", text)
    text = re.sub(r"(\n  uuid: ).*", rf"\g<1>{uuid.uuid4()}", text)
    text = re.sub(r"(\nbundle:\n  name: ).*", rf"\g<1>{name}", text)
    schema = r"(\n  schema:\n    description: .*\n    default: ).*"
    text = re.sub(schema, rf"\g<1>{schema_of(name)}", text)
    return re.sub(r"\n{3,}", "\n\n", text)


def schema_of(name: str) -> str:
    """The name of the schema of a project with that name."""
    return name.replace("-", "_")


def released(text: str, wanted: str) -> str:
    """A resource that installs a released package instead of the wheel just built."""
    text = text.replace("dependencies: [../dist/*.whl]", f'dependencies: ["{wanted}"]')
    return text.replace("- whl: ../dist/*.whl", f'- pypi: {{package: "{wanted}"}}')
