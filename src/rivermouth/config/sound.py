"""The settings of a section by their paths in the file: all of them, or the sound ones.

A problem in one setting must not hide a problem between two others. So rules look at the
settings that are sound, also where pydantic refuses the section as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rivermouth.config.written import Model, settings

Given = Mapping[str, Any]
"""Values by path, for example ``target.keys``. What is faulty or missing is not in it."""


def given(section: Model, path: str = "") -> dict[str, Any]:
    """All settings of a section, with those of the sections in it."""
    found: dict[str, Any] = {}
    for each in settings(type(section)):
        value = getattr(section, each.name)
        if isinstance(value, Model):
            found |= given(value, f"{path}{each.key}.")
        else:
            found[path + each.key] = value
    return found


def sound(model: type[Model], data: object, path: str = "") -> dict[str, Any]:
    """The sound settings of a section from its plain ``data``, which may be anything."""
    found: dict[str, Any] = {}
    if not isinstance(data, Mapping):
        return found
    for each in settings(model):
        here = path + each.key
        if each.section is not None:
            found |= sound(each.section, data.get(each.key, {}), f"{here}.")
        elif each.key not in data and not each.info.is_required():
            found[here] = each.info.get_default(call_default_factory=True)
        else:
            try:
                found[here] = read(model, each.name, data.get(each.key))
            except ValidationError:
                continue
    return found


def read(model: type[Model], name: str, data: object) -> Any:
    """The value of the field ``name`` from plain ``data``. Raises ValidationError."""
    return _adapter(model, name).validate_python(data, strict=True)


@cache
def _adapter(model: type[Model], name: str) -> TypeAdapter[Any]:
    return TypeAdapter(model.model_fields[name].rebuild_annotation())
