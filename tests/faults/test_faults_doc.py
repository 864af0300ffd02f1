"""The page on faults: every fault of the catalogue once, and what it says is so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rivermouth import errors
from rivermouth.config import codes
from rivermouth.config.formats import FORMATS
from rivermouth.errors import ConfigError, RivermouthError

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
CATALOGUE = {"A": 9, "B": 6, "C": 9, "D": 10, "E": 9, "F": 8}
DECISIONS = {"heals", "fails", "halts", "refused", "quarantine", "outside"}
TEST = re.compile(r"^`(tests/[\w/]+\.py)::(test_\w+)`$")
QUOTED = re.compile(r'"([^"]+)"')
CODE = re.compile(r"`(RM\d{3})`")


@dataclass(frozen=True)
class Row:
    """A row of the page; one without an id goes on with the fault above it."""

    id: str
    fault: str
    decision: str
    seen: str
    exits: str
    to_do: str
    test: str

    @property
    def codes(self) -> list[str]:
        return CODE.findall(self.seen)


def rows() -> Iterator[Row]:
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and cells[0] not in ("id", "---"):
            yield Row(*cells)


ROWS = list(rows())


def test_every_fault_of_the_catalogue_has_its_row_and_no_other_has_one() -> None:
    wanted = [f"{group}{n}" for group, last in CATALOGUE.items() for n in range(1, last + 1)]
    assert [row.id for row in ROWS if row.id] == wanted


def test_a_row_says_what_is_decided_what_is_seen_and_what_to_do() -> None:
    for row in ROWS:
        assert row.decision in DECISIONS, row
        assert len(row.fault) > 10, row
        assert len(row.seen) > 6, row
        assert row.to_do, row


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_the_test_of_a_row_exists() -> None:
    for row in ROWS:
        match = TEST.match(row.test)
        assert match, row
        assert match[2] in functions(match[1]), row


def exit_codes() -> dict[str, int]:
    """Every code that a message may carry, and the exit code it leads to."""
    found = {"RM900": 1, **dict.fromkeys(codes(), ConfigError.exit_code)}
    for known in FORMATS.by_name.values():
        found |= dict.fromkeys(known.all_reasons, 0)
    families: list[type[RivermouthError]] = [RivermouthError]
    while families:
        for each in families.pop().__subclasses__():
            if each.__module__.startswith(errors.__name__):
                found[each.code] = each.exit_code
                families.append(each)
    return found


def test_the_codes_of_a_row_exist_and_lead_to_its_exit_codes() -> None:
    known = exit_codes()
    for row in ROWS:
        assert set(row.codes) <= set(known), row
        said = {int(text) for text in re.findall(r"\d", row.exits)}
        meant = {known[code] for code in row.codes}
        meant |= {3} if "`verify`" in row.seen else set()
        assert said <= meant | {0}, f"an exit code that nothing explains: {row}"
        assert meant - {0, 3} <= said, f"a code that leads to another exit code: {row}"
        if row.decision in ("halts", "refused"):
            assert said == {{"halts": 3, "refused": 2}[row.decision]}, row


def test_the_words_of_a_message_are_those_of_the_program() -> None:
    program = "\n".join(
        file.read_text("utf-8") for file in (ROOT / "src" / "rivermouth").rglob("*.py")
    )
    said = [words for row in ROWS for words in QUOTED.findall(row.seen)]
    assert [words for words in said if words not in program] == []
