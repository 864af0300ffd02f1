"""Where the cache lies, and what is said when a disk is full."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rivermouth.errors import DiskFull, SetupError
from rivermouth.local.scratch import cache_folder, writing

pytestmark = pytest.mark.unit

HOME = Path.home()


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"RIVERMOUTH_CACHE": "/named", "XDG_CACHE_HOME": "/xdg"}, Path("/named")),
        ({"RIVERMOUTH_CACHE": "~/named"}, HOME / "named"),
        ({"RIVERMOUTH_CACHE": "named"}, Path.cwd() / "named"),
        ({"RIVERMOUTH_CACHE": "", "XDG_CACHE_HOME": "/xdg"}, Path("/xdg/rivermouth")),
        ({"XDG_CACHE_HOME": ""}, HOME / ".cache/rivermouth"),
        ({}, HOME / ".cache/rivermouth"),
    ],
)
def test_the_cache_lies_where_the_environment_says(environ: dict[str, str], folder: Path) -> None:
    assert cache_folder(environ) == folder


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said_as_such() -> None:
    with (
        pytest.raises(DiskFull, match=r"RM205 .*RIVERMOUTH_CACHE"),
        writing(Path("/dev/full")),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EDQUOT, DiskFull), (errno.EACCES, SetupError), (errno.EROFS, SetupError)],
)
def test_what_the_system_says_keeps_its_meaning(number: int, kind: type[SetupError]) -> None:
    with pytest.raises(SetupError, match="/a/place") as raised, writing(Path("/a/place")):
        raise OSError(number, "as the system says it")
    assert type(raised.value) is kind
