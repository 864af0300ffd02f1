"""The topics of a pattern: they come with records, and go once all of these were read.

Their pipeline is killed with the others. Nothing else happens to its table.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.faults.campaign.faults import position
from tests.faults.campaign.tally import Tally
from tests.faults.campaign.world import PARTITIONS, SHOP_TOPICS, SHOPS, World
from tests.faults.checker.kafka import Cluster

RECORDS = 50
"""In a new topic."""


@dataclass
class Shops:
    """Which of the topics are in Kafka; the first one stays, so that the pattern finds one."""

    world: World
    there: list[str] = field(default_factory=list)
    made: int = 0

    def move(self, number: int, tally: Tally) -> list[str]:
        """What happens in a round, with dice of their own; the names of what did, as told."""
        dice = random.Random(f"{tally.seed} {number} shops")
        moved = {"topic came": self.come(dice), "topic went": self.go(dice)}
        for name, topics in moved.items():
            tally.faults[name] += len(topics)
        return [name for name, topics in moved.items() if topics]

    def come(self, dice: random.Random) -> list[str]:
        """Create up to two topics with records; at the first call at least one."""
        count = max(dice.randrange(3), not self.made)
        new = SHOP_TOPICS[self.made : self.made + count]
        for topic in new:
            self.world.topic(topic, PARTITIONS)
        self.made += len(new)
        self.there += new
        if new:
            self.world.writer.fill(dice.randrange(1 << 30), dict.fromkeys(new, RECORDS))
        return [*new]

    def go(self, dice: random.Random) -> list[str]:
        """Delete one of those that the ledger and the checker have read to their ends."""
        known = [each for each in self.there[1:] if self._is_read(each)]
        gone = [dice.choice(known)] if known else []
        for topic in gone:
            self.world.delete_topic(topic)
            self.there.remove(topic)
        return gone

    def _is_read(self, topic: str) -> bool:
        places = [(topic, number) for number in range(PARTITIONS)]
        bounds = Cluster(self.world.servers).bounds(places)
        stands = position(self.world, SHOPS)
        return all(
            stands.get(each, -1) >= end <= self.world.checked(each)
            for each, (_, end) in bounds.items()
        )
