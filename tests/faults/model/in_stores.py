"""What is explored of object stores: every commit is one put of one object, if there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.faults.model.both_ways import EFFECTS
from tests.faults.model.configurations import (
    LOG_CUT,
    OBJECTS,
    RESTORED_CLEANED_UP,
    RESTORED_TWICE,
    RIVALS,
    TOPIC_CHANGED,
    TWO,
)
from tests.faults.model.effects import TOTALS
from tests.faults.model.explore import Configuration
from tests.faults.model.machine import AS_FILES
from tests.faults.model.opening import STORE_REFUSED

STORE = replace(TWO, ways=(AS_FILES,))
ALONE = replace(STORE, drivers=1, may_halt=frozenset())
LAST_WINS = replace(STORE, last_wins=True, may_end=frozenset({STORE_REFUSED}))
LAST_WINS = replace(LAST_WINS, may_halt=RIVALS | LAST_WINS.may_end)
"""It does not look at the condition of a put: so nothing begins there."""


def _stored(configuration: Configuration) -> Configuration:
    more = configuration.may_halt | RIVALS
    return replace(configuration, guards=OBJECTS, ways=(AS_FILES,), drivers=1, may_halt=more)


_RACE = STORE.under(
    "",
    "two drivers live, freeze and are killed; a put comes late",
    {"time_out": 1, "crash": 1},
    bad=(1,),
)

STORES: Sequence[Configuration] = (
    ALONE.under(
        "store, one at a time",
        "puts come late, or twice; answers are lost, or 409; other writers",
        {"time_out": 2, "conflict": 1, "answer": 1, "optimize": 1},
        records=3,
        bad=(1,),
    ),
    _RACE.under(
        "store, two at once",
        "two drivers live, freeze and are killed; a put comes late",
        {"time_out": 1, "crash": 1},
    ),
    _RACE.under(
        "store, sent twice",
        "two drivers live; a put comes late, and one has 409 for an answer",
        {"time_out": 1, "conflict": 1},
        records=1,
    ),
    _stored(RESTORED_TWICE).under(
        "store, restore",
        "RESTORE at any moment, also while it is being accepted; a put comes late",
        {"time_out": 1, "restore": 2, "crash": 1},
    ),
    _stored(RESTORED_CLEANED_UP).under(
        "store, clean-up",
        "RESTORE, and log clean-up; a put comes late",
        {"time_out": 1, "restore": 1, "trim": 1, "crash": 1},
    ),
    _stored(TOPIC_CHANGED).under(
        "store, another topic",
        "the topic is created again before a put comes, and that is accepted",
        {"time_out": 1, "recreate": 1, "crash": 1},
    ),
    _stored(LOG_CUT).under(
        "store, log cut",
        "its log is cut before a put comes, and that is accepted",
        {"time_out": 1, "cut": 1, "produce": 1},
    ),
    *(
        replace(_RACE, name=f"store, {name}", effect=effect, records=2 if effect is TOTALS else 1)
        for effect, name in EFFECTS.items()
    ),
)
