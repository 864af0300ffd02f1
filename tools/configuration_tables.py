"""Write the tables of keys in docs/configuration.md from the models of the configuration.

    python tools/configuration_tables.py

A table stands between ``<!-- keys: Source -->`` and ``<!-- end -->``. A test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from rivermouth.config import Catalog, Config, Pipeline, Retry, Source, Target, Timestamps
from rivermouth.config.alerts import Alerts, Email
from rivermouth.config.schema import shown
from rivermouth.config.settings import Model, Setting, keys_of, settings

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
TABLES: dict[str, type[Model]] = {
    each.__name__: each
    for each in (Config, Retry, Alerts, Email, Pipeline, Source, Timestamps, Target)
}
MARKED = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """The page with each of its tables as the models say."""
    return MARKED.sub(lambda match: match[1] + "\n" + table(match[2]) + "\n" + match[3], text)


def table(name: str) -> str:
    """The table of one section, by the name of its model."""
    if name == Catalog.__name__:
        return _lines(["key", "default", "meaning"], _catalog_rows())
    model = TABLES[name]
    found = [*settings(model)]
    if any(each.spark for each in found):
        heads = ["key", "Spark's name", "type", "default", "meaning"]
        return _lines(heads, ([_key(each), _spark(each), *_rest(model, each)] for each in found))
    heads = ["key", "type", "default", "meaning"]
    return _lines(heads, ([_key(each), *_rest(model, each)] for each in found))


def _catalog_rows() -> Iterable[list[str]]:
    schema = TypeAdapter(Catalog).json_schema()
    for key, each in schema["properties"].items():
        default = "required" if key in schema["required"] else f"`{each['default']}`"
        yield [f"`{key}`", default, each["description"]]


def _lines(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(each)} |\n" for each in lines)


def _key(setting: Setting) -> str:
    prefix = setting.in_place.prefix if setting.in_place else ""
    return f"`{prefix}…`" if prefix else f"`{setting.key}`"


def _spark(setting: Setting) -> str:
    return f"`{setting.spark.name}`" if setting.spark else ""


def _rest(model: type[Model], setting: Setting) -> list[str]:
    return [_type(setting), _default(model, setting), setting.meaning]


def _type(setting: Setting) -> str:
    written = setting.written
    if written is None:
        return "mapping"
    if written.word or written.schema is None:
        return written.word
    return " or ".join(f"`{each}`" for each in written.schema()["anyOf"][0]["enum"])


def _default(model: type[Model], setting: Setting) -> str:
    if setting.info.is_required():
        told = setting.instead is not None and not setting.instead.others
        return "mostly required" if told else "required"
    if model is Pipeline and setting.key in keys_of(Config):
        return "that of the file"
    default = shown(setting.info.get_default(call_default_factory=True))
    if isinstance(default, Model):
        return "see below"
    text = str(default).lower() if isinstance(default, bool) else default
    return f"`{text}`" if default not in (None, (), {}) else "none"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
