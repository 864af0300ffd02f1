"""The tree of errors: drawn, coded and explained; the three agree."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth import errors
from rivermouth.config import codes
from rivermouth.config.formats import FORMATS
from rivermouth.errors import ConfigError, OffsetGap, RivermouthError

pytestmark = pytest.mark.unit

GUIDE = Path(__file__).parents[2] / "docs" / "errors.md"
DRAWN = re.compile(
    r"^    (?P<bars>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?P<code>RM\S+) +(exit (?P<exit>\d))?"
)

Fact = tuple[str, str, str, int]  # name, parent, code, exit code


def real(parent: type[RivermouthError] = RivermouthError) -> Iterator[Fact]:
    for each in parent.__subclasses__():
        if each.__module__.startswith(errors.__name__):
            yield each.__name__, parent.__name__, each.code, each.exit_code
            yield from real(each)


def drawn() -> Iterator[Fact]:
    """The tree in the docstring. ``RM2xx`` is a family: its own code ends in 00."""
    parents, exits = ["RivermouthError"], [1]
    for line in inspect.getdoc(errors).__str__().splitlines():
        match = DRAWN.match(f"    {line.strip()}" if line.startswith("    ") else "")
        if match is None:
            continue
        depth = len(match["bars"]) // 4
        del parents[depth:], exits[depth:]
        code = match["code"].replace("xx", "00")
        exit_code = int(match["exit"] or exits[-1])
        yield match["name"], parents[-1], code, exit_code
        parents.append(match["name"])
        exits.append(exit_code)


def test_the_drawn_tree_is_the_real_one() -> None:
    assert sorted(drawn()) == sorted(real())


def test_every_code_and_name_stands_once_and_children_are_of_the_family() -> None:
    facts = list(real())
    assert len({code for *_, code, _ in facts}) == len(facts)
    assert len({name for name, *_ in facts}) == len(facts)
    family = {name: code[:3] for name, parent, code, _ in facts if parent == "RivermouthError"}
    for _, parent, code, _ in facts:
        assert code[:3] == family.get(parent, code[:3])


def test_every_error_that_is_raised_says_what_to_do() -> None:
    leaves = [
        each for family in RivermouthError.__subclasses__() for each in family.__subclasses__()
    ]
    leaves = [each for each in leaves if each.__module__.startswith(errors.__name__)]
    assert len(leaves) > 25
    assert [each.__name__ for each in leaves if not each.default_remedy] == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RivermouthError("it broke"), "RM000 it broke"),
        (RivermouthError("it broke", remedy="Mend it"), "RM000 it broke. Mend it"),
        (
            OffsetGap("a gap", where="orders t-0", expected="5", found="7", remedy="Look"),
            "RM401 orders t-0: a gap; expected 5; found 7. Look",
        ),
        (ConfigError(("a.yml:1:1 RM104 one", "a.yml:2:1 RM104 two")), None),
    ],
)
def test_an_error_reads_as_code_place_facts_and_remedy(
    error: RivermouthError, text: str | None
) -> None:
    assert str(error) == (text or "a.yml:1:1 RM104 one\na.yml:2:1 RM104 two")


def test_an_error_has_the_default_remedy_of_its_class_and_the_same_facts_for_machines() -> None:
    assert OffsetGap("a gap", where="w", found="7").as_dict() == {
        "code": "RM401",
        "what": "a gap",
        "where": "w",
        "expected": "",
        "found": "7",
        "remedy": OffsetGap.default_remedy,
    }


def explained() -> dict[str, list[str]]:
    """The rows of the tables in the guide: code to what you see, what it means, what to do."""
    rows: dict[str, list[str]] = {}
    for line in GUIDE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `RM"):
            code = cells[0].strip("`")
            assert code not in rows, f"{code} is explained twice"
            rows[code] = cells[1:]
    return rows


def test_the_guide_explains_every_code_and_no_other() -> None:
    raised = {code: name for name, parent, code, _ in real() if not code.endswith("00")}
    whole = {"RM100", "RM900"}
    quarantined = {code for each in FORMATS.by_name.values() for code in each.all_reasons}
    known = {*raised, *whole, *codes(), *quarantined}
    assert set(explained()) == known


def test_every_row_of_the_guide_says_what_it_is_and_what_to_do() -> None:
    for code, cells in explained().items():
        assert len(cells) == 2, code
        assert all(len(cell) > 10 for cell in cells), code


def test_the_guide_names_the_class_of_every_error() -> None:
    rows = explained()
    for name, _, code, _ in real():
        if code in rows:
            assert f"`{name}`" in rows[code][0], code


def test_the_guide_repeats_what_the_program_says_of_bad_records_and_settings() -> None:
    rows = explained()
    reasons = [pair for each in FORMATS.by_name.values() for pair in each.all_reasons.items()]
    for code, meaning in [*reasons, *codes().items()]:
        assert meaning in rows[code][0], code


def test_what_others_said_is_shown_in_one_printable_line() -> None:
    said = "\x1b[31mred\x1b[0m\n\ttwo\x00 \nstack backtrace:\n   0: somewhere"
    error = errors.BatchFailed("the batch failed", found=said)
    assert error.found == "red two"
    assert str(error).isprintable()
