"""Scratch folders: who holds them, and what is cleared away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rivermouth.local.scratch import (
    ScratchFolder,
    remove_dead,
    remove_old,
    scratch_root,
    shared_folder,
    volumes_root,
)

pytestmark = pytest.mark.unit


def test_a_checkpoint_is_there_for_one_run_and_gone_after_it(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    with ScratchFolder(root, "orders") as held:
        assert held.is_dir()
        assert held.parent == root
        (held / "offsets").mkdir()
    assert list(root.iterdir()) == []


def test_it_goes_even_when_the_run_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), ScratchFolder(tmp_path, "orders"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_two_runs_do_not_clear_each_others_folder(tmp_path: Path) -> None:
    with ScratchFolder(tmp_path, "orders") as one, ScratchFolder(tmp_path, "orders") as two:
        remove_dead(tmp_path)
        assert one != two
        assert one.is_dir()
        assert two.is_dir()


HOLD = """
import os, sys
from pathlib import Path
from rivermouth.local.scratch import ScratchFolder
with ScratchFolder(Path(sys.argv[1]), "bids") as held:
    (held / "offsets").mkdir()
    print(held, flush=True)
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
        with ScratchFolder(tmp_path, "orders") as mine:
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
    with ScratchFolder(tmp_path, "orders"):
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
            with ScratchFolder(tmp_path, "orders") as held:
                (held / "offsets").mkdir()
                remove_dead(tmp_path)
                if not (held / "offsets").is_dir():
                    lost.append(held)

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
    with ScratchFolder(Path("scratch"), "orders") as held:
        assert held.parent == tmp_path / "scratch"
    monkeypatch.setenv("RIVERMOUTH_SCRATCH", "scratch")
    assert scratch_root() == tmp_path / "scratch"
    monkeypatch.setenv("RIVERMOUTH_SCRATCH", "~/scratch")
    assert scratch_root() == Path.home() / "scratch"
    monkeypatch.setenv("RIVERMOUTH_VOLUMES", "volumes")
    assert volumes_root() == tmp_path / "volumes"


def test_the_environment_moves_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RIVERMOUTH_SCRATCH", str(tmp_path))
    assert scratch_root() == tmp_path
    monkeypatch.delenv("RIVERMOUTH_SCRATCH")
    assert scratch_root().name == f"rivermouth-{os.getuid()}"


def test_volumes_are_where_databricks_mounts_them_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RIVERMOUTH_VOLUMES", raising=False)
    assert volumes_root() == Path("/Volumes")
    monkeypatch.setenv("RIVERMOUTH_VOLUMES", str(tmp_path))
    assert volumes_root() == tmp_path


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
    with shared_folder(tmp_path / "volume", "orders") as held:
        assert held.is_dir()
    assert list((tmp_path / "volume").iterdir()) == []


def test_what_is_a_week_old_goes_and_other_things_in_the_volume_stay(tmp_path: Path) -> None:
    old = stage(tmp_path, "0", folder=8, batch=8, file=8)
    young = stage(tmp_path, "1", folder=6, batch=6, file=6)
    (tmp_path / "photos").mkdir()
    aged(tmp_path / "photos", 99)
    with shared_folder(tmp_path, "bids") as held:
        assert {*tmp_path.iterdir()} == {young, held, tmp_path / "photos"}
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
    with shared_folder(tmp_path, "orders") as held:
        assert held.is_dir()
    assert not old.exists()


def _with(
    iterdir: Callable[[Path], Iterator[Path]], root: Path, gone: Path
) -> Callable[[Path], Iterator[Path]]:
    """As ``iterdir``, but in ``root`` there was one more a moment ago."""
    return lambda path: iter([*([gone] if path == root else []), *iterdir(path)])
