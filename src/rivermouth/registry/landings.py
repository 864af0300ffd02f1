"""Landings: the ways in which rows get into a table, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from rivermouth.errors import ConfigError
from rivermouth.registry.platforms import Capability, Platform
from rivermouth.registry.references import Reference

FILES = "files"
"""The landing that decides by the table which way its rows take."""
SEND = "send"
"""The landing that sends rows, and decides by the table of its ledger how entries are committed."""


@dataclass(frozen=True)
class Landing:
    """One way of landing rows.

    ``keyed``: it takes changes by key, else rows to add (``write.rows``); ``sends``: it takes rows
    to send. ``needs`` are the capabilities without which it does not work. ``make`` is
    ``(write.landing.Site) -> Landing``.
    """

    name: str
    keyed: bool
    needs: frozenset[Capability]
    make: Reference
    sends: bool = False


@dataclass
class Landings:
    """The landings that are known. The first that fits is taken."""

    in_order: list[Landing] = field(default_factory=list)

    def register(self, known: Landing) -> None:
        """Put a landing before those that are known."""
        self.in_order.insert(0, known)

    def first(self, platform: Platform, *, keyed: bool, sends: bool = False) -> Landing:
        """The one that is taken on a platform. Raises ConfigError if nothing lands such rows."""
        for each in self.in_order:
            fits = each.keyed is keyed and each.sends is sends
            if fits and platform.has(*each.needs):
                return each
        rows = "rows to send" if sends else "changes by key" if keyed else "rows to add"
        raise ConfigError((f"nothing here lands {rows} on the platform {platform.name}",))


LANDINGS = Landings(
    [
        Landing(
            name=FILES,
            keyed=False,
            needs=frozenset({Capability.ONE_HOST}),
            make="rivermouth.write.landings.files:files",
        ),
        Landing(
            name="dataframe_writer",
            keyed=False,
            needs=frozenset(),
            make="rivermouth.write.landings.dataframe_writer:DataFrameWriter",
        ),
        Landing(
            name="merge",
            keyed=True,
            needs=frozenset({Capability.MERGE_WITH_TRANSACTION, Capability.CACHE}),
            make="rivermouth.write.landings.merge:Merge",
        ),
        Landing(
            name="replace_using",
            keyed=True,
            needs=frozenset(),
            make="rivermouth.write.landings.replace_using:replace_using",
        ),
        Landing(
            name=SEND,
            keyed=False,
            needs=frozenset(),
            make="rivermouth.write.landings.send:Send",
            sends=True,
        ),
    ]
)
