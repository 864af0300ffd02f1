"""What a setting says of itself, beyond its type; and the settings of a section that are right.

The fields of the models are the one list of all settings. The keys and aliases that ``shape``
knows, the settings that rules look at, the JSON Schema and the tables of docs/configuration.md
are all read from the fields, through ``settings``.

A problem in one setting must not hide a problem between two others. So rules look at the
settings that are sound, also where pydantic refuses the section as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

Schema = dict[str, Any]

REFERENCE: Schema = {"type": "string", "pattern": r"\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
"""The JSON Schema of a reference to a variable of the environment."""


NAMES: Schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 0}
"""The JSON Schema of a list of names, which may be empty."""


class Model(BaseModel):
    """A section of the file: frozen, strict, complete."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        populate_by_name=True,
    )


@dataclass(frozen=True, eq=False)
class Written:
    """How a value of a type is written in the file.

    ``word`` names the type for people; without it they are told the choices of the ``enum``.
    ``schema`` makes its JSON Schema, if that is not the one that pydantic makes. ``more`` makes a
    text that is added to the description. Both functions are called when they are needed, because
    choices may be registered late. ``verbatim``: it is a mapping whose values are text as
    written, also ``true`` and ``0500``.
    """

    schema: Callable[[], Schema] | None = None
    word: str = ""
    more: Callable[[], str] = str
    verbatim: bool = False

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        return {**self.schema()} if self.schema is not None else handler(core_schema)


@dataclass(frozen=True, eq=False)
class SparkName:
    """Another name of a setting: the one that Spark has for it.

    ``listed``: under this name it is text with commas instead of a list.
    """

    name: str
    listed: bool = False


@dataclass(frozen=True, eq=False)
class InPlace:
    """A mapping that has no key of its own: its entries stand beside the other settings.

    ``prefix`` is how the names of its entries begin. Without one it is all of the section.
    """

    prefix: str = ""


@dataclass(frozen=True, eq=False)
class Instead:
    """A required setting that is not written where one of the ``others`` is; without others, where
    it is told otherwise.
    """

    others: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Unwritten:
    """A field that is no setting of its section: it comes from elsewhere."""


Found = TypeVar("Found")


@dataclass(frozen=True)
class Setting:
    """A field of a model as a setting. ``key`` is its key in the file, ``name`` its field."""

    name: str
    key: str
    info: FieldInfo

    def _said(self, kind: type[Found]) -> Found | None:
        inner = (getattr(each, "__metadata__", ()) for each in get_args(self.info.annotation))
        every = chain(self.info.metadata, *inner)
        said = (each for each in every if isinstance(each, kind))
        return next(said, None)

    @property
    def written(self) -> Written | None:
        return self._said(Written)

    @property
    def spark(self) -> SparkName | None:
        return self._said(SparkName)

    @property
    def in_place(self) -> InPlace | None:
        return self._said(InPlace)

    @property
    def instead(self) -> Instead | None:
        return self._said(Instead)

    @property
    def meaning(self) -> str:
        """Its description, for people."""
        more = self.written.more() if self.written else ""
        return f"{self.info.description or ''} {more}".strip()

    @property
    def section(self) -> type[Model] | None:
        """The model of its value, if that is a section."""
        return _model(_given(self.info.annotation))

    @property
    def members(self) -> type[Model] | None:
        """The model of each member of its value, if that is a mapping of sections."""
        if self.section is not None:
            return None
        return next(
            (found for arg in get_args(self.info.annotation) if (found := _model(arg))), None
        )


def settings(model: type[BaseModel]) -> Iterator[Setting]:
    """The settings of a section, in order."""
    for name, info in model.model_fields.items():
        if not any(isinstance(each, Unwritten) for each in info.metadata):
            key = info.validation_alias
            yield Setting(name, key if isinstance(key, str) else name, info)


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Every key that a section may have, apart from those with a prefix; aliases last."""
    found = [each for each in settings(model) if each.in_place is None]
    aliases = (each.spark.name for each in found if each.spark)
    return (*(each.key for each in found), *aliases)


def _given(annotation: object) -> object:
    """The type of a value that is there, of one that may be None."""
    kinds = get_args(annotation)
    some = [each for each in kinds if each is not NoneType]
    return some[0] if NoneType in kinds and len(some) == 1 else annotation


def _model(annotation: object) -> type[Model] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, Model) else None
    return None


def one_of(names: Callable[[], Iterable[str]]) -> Callable[[], Schema]:
    """The JSON Schema of a choice of ``names``."""
    return lambda: or_reference({"enum": [*names()]})


def some_of(names: Callable[[], Iterable[str]]) -> Callable[[], Schema]:
    """The JSON Schema of a list of some of ``names``."""
    return lambda: {"type": "array", "items": {"enum": [*names()]}, "uniqueItems": True}


def or_reference(schema: Schema) -> Schema:
    """The schema of a value that may also come from a variable."""
    return {"anyOf": [schema, REFERENCE]}


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


def valid_settings(
    model: type[Model], data: object, path: str = "", context: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The sound settings of a section from its plain ``data``, which may be anything."""
    found: dict[str, Any] = {}
    if not isinstance(data, Mapping):
        return found
    for each in settings(model):
        here = path + each.key
        if each.section is not None:
            found |= valid_settings(each.section, data.get(each.key, {}), f"{here}.", context)
        elif each.key not in data and not each.info.is_required():
            found[here] = each.info.get_default(call_default_factory=True)
        else:
            try:
                found[here] = read_setting(model, each.name, data.get(each.key), context)
            except ValidationError:
                continue
    return found


def read_setting(
    model: type[Model], name: str, data: object, context: Mapping[str, Any] | None = None
) -> Any:
    """The value of the field ``name`` from plain ``data``. Raises ValidationError."""
    return _adapter(model, name).validate_python(data, strict=True, context=context)


@cache
def _adapter(model: type[Model], name: str) -> TypeAdapter[Any]:
    return TypeAdapter(model.model_fields[name].rebuild_annotation())
