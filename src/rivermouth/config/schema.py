"""The JSON Schema of the file as users write it, for completion and checks in an editor.

pydantic makes it from the models. Added here is what the file has and the models do not: Spark's
names, options in place, no ``null``. It says a little less than ``load``: rules over several
settings are not in it. Any value that is not plain text may also be a ``${env:…}`` reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import CoreSchema, core_schema

from rivermouth.config.models import Config
from rivermouth.config.settings import Schema, Setting, settings
from rivermouth.config.start import Start
from rivermouth.config.values import shown_duration


def json_schema() -> dict[str, object]:
    """The schema (draft 2020-12) of a configuration file."""
    return Config.model_json_schema(schema_generator=_OfTheFile)


class _OfTheFile(GenerateJsonSchema):
    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> Schema:
        made = super().generate(schema, mode)
        whole = _inlined(made, made.pop("$defs", {}))
        return {"$schema": self.schema_dialect, "title": "rivermouth configuration", **whole}

    def sort(self, value: Schema, parent_key: str | None = None) -> Schema:
        return value  # the order of the models is the one to show

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> Schema:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        """Without defaults that say nothing: editors offer a default as what to write."""
        if isinstance(schema.get("default"), (BaseModel, tuple, type(None))):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def encode_default(self, dft: Any) -> Any:
        return shown(dft)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        made = super().dataclass_schema(schema)
        del made["title"]
        return made

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        made = super().model_schema(schema)
        del made["title"]
        properties: dict[str, Schema] = made["properties"]
        written = [*settings(schema["cls"])]
        made["properties"] = {}
        if "required" in made:
            asked = (each for each in written if each.in_place is None)
            made["required"] = [each.key for each in asked if each.info.is_required()]
        for each in written:
            own = properties[each.key]
            if each.in_place is None:
                made["properties"][each.key] = {**own, **_described(each.meaning)}
                _add_spark_name(made, each, own)
                _add_others(made, each)
            elif each.in_place.prefix:
                member = {**own["additionalProperties"], **_described(each.meaning)}
                made["patternProperties"] = {f"^{re.escape(each.in_place.prefix)}": member}
            else:
                made |= own
        return made


def _described(meaning: str) -> Schema:
    return {"description": meaning} if meaning else {}


def _add_spark_name(section: Schema, setting: Setting, own: Schema) -> None:
    """Spark's name as a key of its own, not to be given together with ours."""
    if setting.spark is None:
        return
    name, ours = setting.spark.name, setting.key
    section["properties"][name] = {**own, **_described(f"Spark's name of `{ours}`.")}
    if setting.spark.listed:
        examples = [",".join(each) for each in own.get("examples", ())]
        text = f"Spark's name of `{ours}`: text with commas."
        section["properties"][name] = {**_described(text), "type": "string", "examples": examples}
    rules = section.setdefault("allOf", [])
    if setting.info.is_required():
        section["required"].remove(ours)
        rules.append({"oneOf": [{"required": [ours]}, {"required": [name]}]})
    else:
        rules.append({"not": {"required": [ours, name]}})


def _add_others(section: Schema, setting: Setting) -> None:
    """A required setting, or one of those that stand instead of it."""
    if setting.instead is None:
        return
    section["required"].remove(setting.key)
    if setting.instead.others:
        names = (setting.key, *setting.instead.others)
        section["oneOf"] = [{"required": [name]} for name in names]


def _inlined(value: Any, sections: Mapping[str, Schema]) -> Any:
    """References replaced by their sections: some editors ignore what is beside a ``$ref``."""
    if isinstance(value, list):
        return [_inlined(each, sections) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        section = sections[value["$ref"].rpartition("/")[2]]
        beside = {key: each for key, each in value.items() if key != "$ref"}
        return _inlined({**section, **beside}, sections)
    return {key: _inlined(each, sections) for key, each in value.items()}


def shown(default: object) -> object:
    """A default as the file would write it."""
    if isinstance(default, timedelta):
        return shown_duration(default)
    if isinstance(default, Start):
        return default.edge
    if isinstance(default, tuple) and default:
        return f"[{', '.join(map(str, default))}]"
    return default.value if isinstance(default, Enum) else default
