"""What a later version wrote into a log is not guessed at."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rivermouth.errors import LedgerBroken
from tests.builders import span
from tests.doubles import Driver, World

pytestmark = pytest.mark.unit


def test_an_entry_of_a_later_format_halts_the_start_before_a_write() -> None:
    world = World(ends={span(0, 0).topic_partition: 5})
    Driver(world).open().batch()
    last = world.commits[-1]
    assert last.user_metadata is not None
    later = {**json.loads(last.user_metadata), "rivermouth": 2, "more": "than we know"}
    world.commits[-1] = replace(last, user_metadata=json.dumps(later))
    before = len(world.commits)

    with pytest.raises(LedgerBroken, match=r"format 2.*Upgrade rivermouth") as halted:
        Driver(world).open()

    assert (halted.value.code, halted.value.exit_code) == ("RM410", 3)
    assert len(world.commits) == before
