"""What came with a later micro release is not used: 3.10.0, and Debian's 3.11.2, do not have it.

Type checkers and linters know the minor releases alone. These are the additions that Python's own
documentation dates with a micro release of 3.10 or of a later one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.unit.test_tidy import CODE, TESTS, short, tree

pytestmark = pytest.mark.unit

ARGUMENTS = {
    "extract": "filter",  # tarfile: 3.10.12, 3.11.4
    "extractall": "filter",
    "unpack_archive": "filter",  # shutil
    "getaddresses": "strict",  # email.utils: 3.10.15, 3.11.10, 3.12.6
    "parseaddr": "strict",
}
"""An argument, by the function that takes it."""
NAMES = {
    # tarfile: 3.10.12, 3.11.4
    "AbsoluteLinkError",
    "AbsolutePathError",
    "FilterError",
    "LinkOutsideDestinationError",
    "OutsideDestinationError",
    "SpecialFileError",
    "data_filter",
    "fully_trusted_filter",
    "tar_filter",
    # tarfile, os.path: 3.10.18, 3.11.13, 3.12.11, 3.13.4
    "ALLOW_MISSING",
    "LinkFallbackError",
    # sys: 3.10.7
    "get_int_max_str_digits",
    "set_int_max_str_digits",
    "str_digits_check_threshold",
    # xml.parsers.expat: 3.10.14, 3.11.9, 3.12.3
    "GetReparseDeferralEnabled",
    "SetReparseDeferralEnabled",
}


def used(code: ast.AST) -> Iterator[str]:
    """What of the above a module uses. A name in quotes, for ``getattr``, is asked for first."""
    for node in ast.walk(code):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            argument = ARGUMENTS.get(name)
            if argument and any(each.arg == argument for each in node.keywords):
                yield f"{name}({argument}=)"
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in NAMES)


def test_nothing_needs_a_later_micro_release() -> None:
    found = {short(path): [*used(tree(path))] for path in (*CODE, *TESTS)}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("archive.extractall(here, filter='data')", ["extractall(filter=)"]),
        ("unpack_archive(here, filter='data')", ["unpack_archive(filter=)"]),
        ("from tarfile import data_filter", ["data_filter"]),
        ("sys.set_int_max_str_digits(0)", ["set_int_max_str_digits"]),
        ("getattr(tarfile, 'data_filter', None)", []),
        ("kept = rows.filter(filter=here)", []),
    ],
)
def test_it_is_found(code: str, found: list[str]) -> None:
    assert [*used(ast.parse(code))] == found
