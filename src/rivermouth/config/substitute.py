"""``${env:NAME}`` and ``${env:NAME:-default}`` in the text of a value.

As in a shell, the default also stands in for a variable that is set but empty; it ends at
the first ``}``. ``$${`` is a literal ``${``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rivermouth.config.problems import Fault, Kind, Refused

_REFERENCE = re.compile(
    r"\$\$\{|\$\{env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}"
    r"|\$\{(?P<kind>[A-Za-z]+:)?"
)
KNOWN = "write ${env:NAME} or ${env:NAME:-default}, or $${ for a literal ${"


class EnvText(str):
    """Text made with a variable: a field that is not text may still read its own type from it."""

    __slots__ = ()


def substitute(text: str, environ: Mapping[str, str], *, secret: bool) -> str:
    """The text with every reference replaced: an ``EnvText`` if there was one.

    ``secret`` says that nothing of the text may be quoted. Raises ``Refused`` with every
    missing variable and malformed reference; no value of a variable is ever in it.
    """
    faults: list[Fault] = []
    from_env = False

    def replace(match: re.Match[str]) -> str:
        nonlocal from_env
        if match[0] == "$${":
            return "${"
        name, default = match["name"], match["default"]
        if name is None:
            faults.append(_malformed(match, secret))
            return ""
        from_env = True
        value = environ.get(name)
        if default is not None:
            return value or default[2:]
        if value is None:
            fix = f"set it, or write ${{env:{name}:-default}}"
            message = f"{{path}} needs the environment variable {name}, which is not set"
            faults.append(Fault(Kind.NO_VARIABLE, message, fix=fix))
        return value or ""

    result = _REFERENCE.sub(replace, text)
    if faults:
        raise Refused(*faults)
    return EnvText(result) if from_env else result


def _malformed(match: re.Match[str], secret: bool) -> Fault:
    kind = match["kind"]
    if kind is None or secret:
        return Fault(Kind.BAD_REFERENCE, "{path} has a reference of unknown form", fix=KNOWN)
    if kind == "env:":
        message = "{path} has an ${env:…} reference without a proper name or end"
    else:
        message = '{path} has a reference of unknown kind "${' + kind + '…}"'
    return Fault(Kind.BAD_REFERENCE, message, fix=KNOWN)
