"""What the metadata declares, read back, and which versions that takes."""

from __future__ import annotations

import pytest

from rivermouth.local.requirements import Requirement, of_extras
from tests.wheel import requirements

pytestmark = pytest.mark.unit

LINES = ("numpy>=1.26", "pandas<3,>=2.2; extra == 'local'", "pyspark==4.2.0; extra == 'local'")


def test_a_line_of_the_metadata_is_read_with_its_extra() -> None:
    assert of_extras(LINES, ()) == [Requirement("numpy", ">=1.26")]
    assert of_extras(LINES, ("local",)) == [
        Requirement("numpy", ">=1.26"),
        Requirement("pandas", "<3,>=2.2", "local"),
        Requirement("pyspark", "==4.2.0", "local"),
    ]
    assert Requirement.parse('grpcio[a, b] >=1.2, <2 ; extra == "x-y"') == Requirement(
        "grpcio", ">=1.2,<2", "x-y"
    )


@pytest.mark.parametrize(
    "line", ["a~=1.2", "a!=1.2", "a>=1; python_version < '3.11'", "a @ file:///a", ""]
)
def test_a_line_that_we_do_not_write_is_refused_rather_than_misread(line: str) -> None:
    with pytest.raises(ValueError, match="no requirement that rivermouth writes"):
        Requirement.parse(line)


def test_every_line_of_the_wheel_can_be_read() -> None:
    assert all(Requirement.parse(each).package for each in requirements())


@pytest.mark.parametrize(
    ("bounds", "version", "wrong"),
    [
        ("", "0.1", ""),
        (">=2.2,<3", "2.2", ""),
        (">=2.2,<3", "2.2.0", ""),
        (">=2.2.0,<3", "2.2", ""),
        (">=2.2,<3", "2.10.1", ""),
        (">=2.2,<3", "2.1.9", "too old"),
        ("<3,>=2.2", "3.0.0", "too new"),
        ("<3,>=2.2", "3.0.0rc1", "too new"),
        ("==4.2.0", "4.2.0", ""),
        ("==4.2.0", "4.2.0+build5", ""),
        ("==4.2.0", "4.1.1", "too old"),
        ("==4.2.0", "4.2.1", "too new"),
    ],
)
def test_bounds_take_a_version_or_say_what_is_wrong_with_it(
    bounds: str, version: str, wrong: str
) -> None:
    assert Requirement("a", bounds).wrong(version) == wrong


@pytest.mark.parametrize(
    ("bounds", "lowest"), [(">=2.2,<3", "2.2"), ("<3,>=2.2", "2.2"), ("==4.2.0", "4.2.0"), ("", "")]
)
def test_the_lowest_version_is_the_one_that_is_named(bounds: str, lowest: str) -> None:
    assert Requirement("a", bounds).lowest == lowest
