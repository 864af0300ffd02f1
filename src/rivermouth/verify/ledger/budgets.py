"""Amounts that several givers have, and that takers share. Pure.

A taker may name several givers. What it draws is moved to another of its givers where a later taker
needs just that one. So the sum of all draws does not depend on which giver is asked first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

Step = tuple[int, int]
"""A taker, and a giver of which it draws more."""


class Budgets:
    """What each giver has left; None: it has no limit."""

    def __init__(self, amounts: Mapping[int, int | None]) -> None:
        self._left = {each: 1 << 62 if most is None else most for each, most in amounts.items()}
        self._drawn: dict[int, Counter[int]] = {each: Counter() for each in amounts}
        """By giver, then by taker."""
        self._givers: dict[int, Sequence[int]] = {}

    def draw(self, taker: int, givers: Sequence[int], wanted: int) -> int:
        """How much of ``wanted`` the givers can give a taker. Counts it.

        A taker has the same givers each time.
        """
        self._givers[taker] = givers
        drawn = 0
        while drawn < wanted and (path := self._path(taker)):
            drawn += self._move(path, wanted - drawn)
        return drawn

    def _path(self, taker: int) -> tuple[Step, ...]:
        """The shortest way to a giver that has something left; empty where there is none.

        The taker of each step but the first draws less of the giver of the step before.
        """
        ways: deque[tuple[Step, ...]] = deque([()])
        takers, givers = deque([taker]), set[int]()
        while takers:
            way, at = ways.popleft(), takers.popleft()
            for giver in self._givers[at]:
                if giver in givers:
                    continue
                givers.add(giver)
                longer = (*way, (at, giver))
                if self._left[giver]:
                    return longer
                others = [each for each, some in self._drawn[giver].items() if some]
                takers.extend(others)
                ways.extend([longer] * len(others))
        return ()

    def _move(self, path: Sequence[Step], wanted: int) -> int:
        """Draw along a path as much as each of its steps allows."""
        back = [(giver, taker) for (_, giver), (taker, _) in pairwise(path)]
        last = path[-1][1]
        amount = min(wanted, self._left[last], *(self._drawn[each][of] for each, of in back))
        self._left[last] -= amount
        for taker, giver in path:
            self._drawn[giver][taker] += amount
        for giver, taker in back:
            self._drawn[giver][taker] -= amount
        return amount
