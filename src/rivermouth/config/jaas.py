"""The line in which the Java client is told a login: ``module required field="text" …;``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FIELD = re.compile(
    r"""([\w.$-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^"'\s;]+))""", re.DOTALL
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_jaas(line: str) -> dict[str, str]:
    """The fields of a JAAS line; of a field that is given twice, the first one."""
    fields: dict[str, str] = {}
    for name, double, single, bare in _FIELD.findall(line):
        quoted = re.sub(r"\\(.)", lambda it: _ESCAPES.get(it[1], it[1]), double or single)
        fields.setdefault(name, bare or quoted)
    return fields


def write_jaas(module: str, fields: Mapping[str, str]) -> str:
    """The JAAS line with these fields. Their text may hold any characters."""
    words = [module, "required", *(f"{name}={_quoted(text)}" for name, text in fields.items())]
    return " ".join(words) + ";"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'
