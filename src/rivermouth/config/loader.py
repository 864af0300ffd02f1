"""From a file to a ``Config``, or to all problems of the file at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from rivermouth.config import models, problems, rules
from rivermouth.config.beside import look_beside
from rivermouth.config.located import Node, plain, problem
from rivermouth.config.pipeline import Pipeline
from rivermouth.config.problems import Fault, Kind, Problem, Refused
from rivermouth.config.reader import read
from rivermouth.config.shape import shape
from rivermouth.config.shared_rules import shared_faults
from rivermouth.config.sound import sound
from rivermouth.errors import ConfigError

Found = tuple[problems.Path, Fault]

_EXPECTED = {
    "string_type": ("text", "put it in quotes"),
    "int_type": ("a whole number", "write it without quotes"),
    "tuple_type": ("a list", "write [a, b]"),
    "mapping_type": ("a mapping", ""),
    "dict_type": ("a mapping", ""),
    "model_type": ("a mapping", ""),
}


def load(
    path: Path, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> models.Config:
    """Read a configuration file. ``folder`` replaces the warehouse that the file names.

    Python finds the modules beside the file from then on, see ``beside``.
    Raises ``ConfigError`` with all problems, in the order of the file. No problem shows a
    secret, or the value of a variable of the environment.
    """
    text = _text(path)
    written, found = read(text, environ)
    config = None
    if written is not None:
        shaped, faults = shape(written)
        found += _placed(written, faults)
        absolute = path.absolute()
        try:
            data = plain(shaped)
            if isinstance(data, dict):
                data["path"] = absolute
                data |= {"warehouse": folder.absolute()} if folder is not None else {}
            context = {"folder": absolute.parent}
            config = models.Config.model_validate(data, context=context)
            found += _placed(shaped, look_beside(config))
        except ValidationError as error:
            found += _placed(shaped, [*_faults(error), *_between(plain(shaped))])
    if found or config is None:
        raise ConfigError(tuple(item.render(str(path)) for item in sorted(set(found))))
    return config


def _text(path: Path) -> str:
    fault = ""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        fault = "there is no such file — check the path"
    except IsADirectoryError:
        fault = "this is a folder — name the file in it"
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        place = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        item = Problem(*place, Kind.FILE.code, "the file is not UTF-8 — save it as UTF-8")
        raise ConfigError((item.render(str(path)),)) from None
    except (OSError, ValueError) as error:
        fault = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ConfigError((Problem(0, 0, Kind.FILE.code, fault).render(str(path)),))


def _placed(root: Node, found: Iterable[Found]) -> list[Problem]:
    placed = (problem(root, path, fault) for path, fault in found)
    return [item for item in placed if item is not None]


def _faults(error: ValidationError) -> Iterator[Found]:
    """Our faults as they are, and pydantic's own in our words, without the values that it shows."""
    for detail in error.errors(include_url=False, include_input=False):
        path, kind = tuple(step for step in detail["loc"] if step != "[key]"), detail["type"]
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, Refused):
            yield from ((path, fault) for fault in cause.faults)
        elif kind == "missing":
            fault = Fault(Kind.MISSING_KEY, f"{{path}} lacks the key {path[-1]}", at_key=True)
            yield path[:-1], fault
        elif kind in _EXPECTED:
            what, fix = _EXPECTED[kind]
            yield path, Fault(Kind.WRONG_TYPE, f"{{path}} must be {what}, not {{value}}", fix=fix)
        else:
            yield path, Fault(Kind.BAD_VALUE, f"{{path}} is refused: {kind}")


def _between(data: object) -> Iterator[Found]:
    """What the rules say about the sound settings of a file that has faulty ones."""
    pipelines = data.get("pipelines") if isinstance(data, Mapping) else None
    found = {}
    for name, pipeline in pipelines.items() if isinstance(pipelines, Mapping) else ():
        found[name] = sound(Pipeline, pipeline)
        for fault in rules.pipeline_faults(found[name]):
            yield ("pipelines", name), fault
    for fault in shared_faults(found):
        yield (), fault
