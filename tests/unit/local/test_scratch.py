"""Scratch folders: who holds them, and what is cleared away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rivermouth.local.scratch import (
    remove_dead,
    remove_old,
    scratch_folder,
    scratch_root,
    shared_folder,
    volumes_root,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("fails", [False, True])
def test_a_folder_is_there_for_one_run_and_gone_after_it(tmp_path: Path, fails: bool) -> None:
    root = tmp_path / "scratch"
    with suppress(RuntimeError), scratch_folder(root, "orders") as folder:
        assert (folder.parent, folder.is_dir()) == (root, True)
        (folder / "offsets").mkdir()
        if fails:
            raise RuntimeError
    assert list(root.iterdir()) == []


def test_two_runs_do_not_clear_each_others_folder(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "orders") as one, scratch_folder(tmp_path, "orders") as two:
        remove_dead(tmp_path)
        assert one != two
        assert one.is_dir()
        assert two.is_dir()


HOLD = """
import os, sys
from pathlib import Path
from rivermouth.local.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1]), "bids") as folder:
    (folder / "offsets").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.kill
def test_what_a_killed_run_left_is_cleared_by_the_next_and_not_before(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        remove_dead(tmp_path)
        assert left.is_dir(), "it is alive"
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert left.is_dir()
        with scratch_folder(tmp_path, "orders") as mine:
            assert {each.name for each in tmp_path.iterdir()} == {
                mine.name,
                mine.name + ".lock",
            }


OTHERS = ["notes.txt", "spark", "orders", "orders-1", "photos-0123456789abcdef", "x.lock"]


def test_other_things_in_the_folder_are_none_of_our_business(tmp_path: Path) -> None:
    for name in OTHERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("kept")
    (tmp_path / "letter").write_text("kept")
    with scratch_folder(tmp_path, "orders"):
        pass
    assert {each.name for each in tmp_path.iterdir()} == {*OTHERS, "letter"}
    assert all((tmp_path / name / "precious").exists() for name in OTHERS)


def test_a_run_between_its_lock_and_its_folder_is_left_alone(tmp_path: Path) -> None:
    lock = tmp_path / f"orders-{'0' * 32}.lock"
    lock.touch()
    inode = lock.stat().st_ino
    remove_dead(tmp_path)
    assert lock.stat().st_ino == inode


def test_a_dead_folder_without_a_lock_goes_too(tmp_path: Path) -> None:
    (tmp_path / f"orders-{'0' * 32}" / "offsets").mkdir(parents=True)
    remove_dead(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_many_runs_that_start_and_end_at_once_keep_their_folders(tmp_path: Path) -> None:
    lost: list[Path] = []

    def run() -> None:
        for _ in range(25):
            with scratch_folder(tmp_path, "orders") as folder:
                (folder / "offsets").mkdir()
                remove_dead(tmp_path)
                if not (folder / "offsets").is_dir():
                    lost.append(folder)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert lost == []
    assert [each for each in tmp_path.iterdir() if each.suffix != ".lock"] == []


def test_a_relative_root_gives_an_absolute_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark takes the folder of a checkpoint as a URI, and a URI has no relative path."""
    monkeypatch.chdir(tmp_path)
    with scratch_folder(Path("scratch"), "orders") as folder:
        assert folder.parent == tmp_path / "scratch"


@pytest.mark.parametrize(
    ("value", "root"),
    [
        ("/a/place", "/a/place"),
        ("scratch", str(Path.cwd() / "scratch")),
        ("~/scratch", str(Path.home() / "scratch")),
        ("", ""),
    ],
)
def test_the_environment_moves_them_and_every_path_is_absolute(
    monkeypatch: pytest.MonkeyPatch, value: str, root: str
) -> None:
    monkeypatch.setenv("RIVERMOUTH_SCRATCH", value)
    monkeypatch.setenv("RIVERMOUTH_VOLUMES", value)
    user = Path(tempfile.gettempdir(), f"rivermouth-{os.getuid()}")
    assert scratch_root() == (Path(root) if root else user)
    assert volumes_root() == Path(root or "/Volumes")


# Where no lock is to be had

DAY = 86400


def stage(root: Path, name: str, *, folder: int, batch: int, file: int) -> Path:
    """A run's folder with the stage of one batch, each last written to so many days ago."""
    made = root / f"orders-{name * 32}"
    (made / "batch" / "_temporary").mkdir(parents=True)
    part = made / "batch" / "_temporary" / "part-0"
    part.write_bytes(b"PAR1")
    for path, days in ((part, file), (part.parent, batch), (made / "batch", batch), (made, folder)):
        aged(path, days)
    return made


def aged(path: Path, days: int) -> None:
    ago = time.time() - days * DAY
    os.utime(path, (ago, ago))


def test_a_shared_folder_is_there_for_one_run_and_gone_after_it(tmp_path: Path) -> None:
    with shared_folder(tmp_path / "volume", "orders") as folder:
        assert folder.is_dir()
    assert list((tmp_path / "volume").iterdir()) == []


def test_what_is_a_week_old_goes_and_other_things_in_the_volume_stay(tmp_path: Path) -> None:
    old = stage(tmp_path, "0", folder=8, batch=8, file=8)
    young = stage(tmp_path, "1", folder=6, batch=6, file=6)
    (tmp_path / "photos").mkdir()
    aged(tmp_path / "photos", 99)
    with shared_folder(tmp_path, "bids") as folder:
        assert {*tmp_path.iterdir()} == {young, folder, tmp_path / "photos"}
    assert not old.exists()


@pytest.mark.parametrize(("folder", "batch"), [(30, 30), (30, 0), (0, 30)])
def test_a_batch_that_is_being_written_stays_however_old_its_folders_look(
    tmp_path: Path, folder: int, batch: int
) -> None:
    """On some volumes a folder's time stays when something is put into it."""
    live = stage(tmp_path, "0", folder=folder, batch=batch, file=0)
    remove_old(tmp_path)
    assert (live / "batch" / "_temporary" / "part-0").exists()


def test_old_batches_of_a_run_go_one_by_one(tmp_path: Path) -> None:
    live = stage(tmp_path, "0", folder=30, batch=30, file=30)
    (live / "another").mkdir()
    remove_old(tmp_path)
    assert [each.name for each in live.iterdir()] == ["another"]


def test_a_folder_that_its_run_removes_meanwhile_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone, old = tmp_path / f"bids-{'a' * 32}", stage(tmp_path, "b", folder=8, batch=8, file=8)
    monkeypatch.setattr(Path, "iterdir", _with(Path.iterdir, tmp_path, gone))
    with shared_folder(tmp_path, "orders") as folder:
        assert folder.is_dir()
    assert not old.exists()


def _with(
    iterdir: Callable[[Path], Iterator[Path]], root: Path, gone: Path
) -> Callable[[Path], Iterator[Path]]:
    """As ``iterdir``, but in ``root`` there was one more a moment ago."""
    return lambda path: iter([*([gone] if path == root else []), *iterdir(path)])
