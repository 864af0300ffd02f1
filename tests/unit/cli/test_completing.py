"""What a shell offers at Tab: a real bash asks, and the answers that zsh and fish get."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import page, section, snippets
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit

FILE = """\
pipelines:
  bids:
    source: {topics: [bids, "${env:TOPIC}"]}
  orders:
    source: {topics: {assign: {orders.eu: [0, 1]}}}
  clicks:
    source: {subscribe: "clicks, bids"}
  logs:
    source: {topics: {pattern: "log-.*"}}
  unfinished:
"""
PIPELINES = ["bids", "orders", "clicks", "logs", "unfinished"]
TOPICS = ["bids", "orders.eu", "clicks"]
HEAVY = ("pyspark", "deltalake", "confluent_kafka", "pyarrow")
ASK = """\
eval "$(rivermouth completion bash)"
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    $(complete -p rivermouth | sed 's/.* -F \\([^ ]*\\) .*/\\1/') rivermouth
    echo "${COMPREPLY[*]}"
}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a configuration, with broken ones, and with the command as a shell finds it."""
    (tmp_path / "lake.yml").write_text(FILE, encoding="utf-8")
    (tmp_path / "torn.yml").write_text("pipelines: {bids: {", encoding="utf-8")
    (tmp_path / "list.yml").write_text("- pipelines", encoding="utf-8")
    command = tmp_path / "rivermouth"
    blocked = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r}))"
    code = shlex.quote(f"{blocked}; from rivermouth.cli.app import main; main()")
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {code} "$@"\n')
    command.chmod(0o755)
    return tmp_path


def said(home: Path, words: list[str], **environ: str) -> str:
    """What a command prints, in the folder; nothing goes to standard error."""
    path = f"{home}:{os.environ['PATH']}"
    done = subprocess.run(
        words,
        cwd=home,
        env={**os.environ, "HOME": str(home), "PATH": path, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_bash_completes_commands_options_and_the_names_of_the_file(home: Path) -> None:
    asked = {
        "rivermouth histo": ["history"],
        "rivermouth run lake.yml --sel": ["--select"],
        "rivermouth run ''": [],  # bash offers files itself
        "rivermouth peek lake.yml ''": TOPICS,
        "rivermouth history torn.yml ''": [],
    }
    script = ASK + "".join(f"ask {line}\n" for line in asked)
    answers = said(home, ["bash", "--norc", "-c", script]).splitlines()
    assert dict(zip(asked, map(str.split, answers), strict=True)) == asked


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("completion ", ["bash", "zsh", "fish"]),
        ("history lake.yml ", PIPELINES),
        ("replay '~/lake.yml' o", ["orders"]),
        ("resume '$HOME/lake.yml' o", ["orders"]),
        ("topic lake.yml o", ["orders.eu"]),
        ("peek lake.yml bids --pipeline cl", ["clicks"]),
        ("run lake.yml --json --select ", PIPELINES),
        ("run lake.yml --select bids,", [f"bids,{name}" for name in PIPELINES[1:]]),
        ("history list.yml ", []),
        ("history none.yml ", []),
        ("history lake.yml orders ", []),
        ("--version histo", ["history"]),
    ],
)
def test_what_may_follow_is_of_the_file(
    home: Path,
    rivermouth: Rivermouth,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    offered: list[str],
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("_RIVERMOUTH_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"rivermouth {line}")
    ended = rivermouth()
    assert ended.err == ""
    assert [each.partition("\t")[0] for each in ended.out.split("\n") if each] == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_another_shell_is_answered_in_its_own_form(home: Path, shell: str) -> None:
    environ = {
        "_RIVERMOUTH_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "rivermouth peek lake.yml ",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    quoted = (f'"{name}"' for name in TOPICS)
    expected = {"zsh": f"_arguments '*: :(({chr(10).join(quoted)}))'", "fish": "\n".join(TOPICS)}
    assert said(home, ["rivermouth"], **environ).strip() == expected[shell]


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o default -F _rivermouth_completion rivermouth"),
        ("zsh", "compdef _rivermouth_completion rivermouth"),
        ("fish", "complete --command rivermouth --no-files"),
    ],
)
def test_each_shell_has_a_script(rivermouth: Rivermouth, shell: str, line: str) -> None:
    ended = rivermouth("completion", shell)
    assert ended.code == 0
    assert line in ended.out
    assert f"_RIVERMOUTH_COMPLETE=complete_{shell}" in ended.out


def test_the_page_writes_the_script_of_each_shell(home: Path) -> None:
    text = section(page("configuration"), "## Completion in a shell")
    [lines] = snippets(text, "sh")
    (home / ".config" / "fish" / "completions").mkdir(parents=True)
    said(home, ["bash", "--norc", "-c", lines])
    for file in (".bashrc", ".zshrc", ".config/fish/completions/rivermouth.fish"):
        assert "_RIVERMOUTH_COMPLETE" in (home / file).read_text(encoding="utf-8")


def test_a_shell_that_is_not_known_is_wrong_usage(rivermouth: Rivermouth) -> None:
    ended = rivermouth("completion", "tcsh")
    assert ended.code == 2
    assert "'bash', 'zsh', 'fish'" in ended.err
