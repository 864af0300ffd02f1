"""Each command has two examples, which it would accept, and which its help shows as they are."""

from __future__ import annotations

import shlex
from itertools import takewhile

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from rivermouth.cli.app import app
from rivermouth.cli.examples import EXAMPLES
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit

OPERATORS = {"|", ">", ">>", "&&"}


def names(commands: typer.Typer, words: str = "") -> set[str]:
    """The words of each command."""
    inner = (
        names(each.typer_instance, f"{words}{each.name} ")
        for each in commands.registered_groups
        if each.typer_instance is not None
    )
    return {f"{words}{each.name}" for each in commands.registered_commands}.union(*inner)


def words_of(line: str) -> list[str]:
    """The first command of a line of the shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return [*takewhile(lambda word: word not in OPERATORS, lexer)]


def test_no_command_is_without_examples_and_no_example_without_its_command() -> None:
    assert {*EXAMPLES} == names(app)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_accepts_its_examples(name: str) -> None:
    for what, line in EXAMPLES[name]:
        assert what.endswith(".")
        program, *words = words_of(line)
        assert program == "rivermouth"
        assert [*words[: len(name.split())]] == name.split()
        command = get_command(app)
        while isinstance(command, TyperGroup):
            command = command.commands[words.pop(0)]
        command.make_context(name, words)  # raises what the command would say of wrong usage


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_shows_them_in_80_columns(rivermouth: Rivermouth, name: str) -> None:
    shown = rivermouth(*name.split(), "--help").out.splitlines()
    assert [line for line in shown if len(line) > 80] == []
    for what, line in EXAMPLES[name]:
        assert f"    {what}" in shown
        assert f"      {line}" in shown
