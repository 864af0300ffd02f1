"""To which topic each record of a pipeline that sends belongs: the one of its entry or of its row.

Topics are numbers here: places in ``names``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Undecodable
from rivermouth.verify.ledger.entry import LedgerEntry

FUNCTION = -1
"""Instead of a topic: the records of the entry went to a function."""
BY_ROW = -2
"""Instead of a topic: a column names that of each record."""


class SentTopics:
    """The topics of all effective entries, and which of them a record belongs to.

    ``names`` are in order. ``of_entry`` gives for each entry the number of its topic, ``FUNCTION``
    or ``BY_ROW``. ``columns`` are those of records, in order. ``made`` tells for each entry whether
    own code made what was sent; then a record does not tell its topic.
    """

    def __init__(self, entries: Sequence[LedgerEntry], columns: Sequence[str]) -> None:
        self.names = sorted({name for each in entries for name in _topics(each)})
        self._listed = [[self.names.index(name) for name in _topics(each)] for each in entries]
        self._chosen_by = [each.config.get("topic_column") for each in entries]
        self._partitioned_by = [each.config.get("partition_column") for each in entries]
        self._columns = tuple(columns)
        self.made = np.array([bool(each.transform) for each in entries], bool)
        told = zip(self._listed, self._chosen_by, strict=True)
        self.of_entry = np.array([_number(*each) for each in told], np.int64)

    def of_record(self, entry: int, values: Sequence[object]) -> int:
        """The topic of a record of an entry that has ``BY_ROW``, by the values of its columns.

        Raises Undecodable where the record names none of the topics of its entry, and CannotTell.
        """
        if self.made[entry]:
            raise CannotTell("own code names the topic")
        name = self._told(self._chosen_by[entry], values)
        for number in self._listed[entry]:
            if name == self.names[number]:
                if type(name) is not str:  # equal to other texts, too: of a number, 1.5 and 1.50
                    raise CannotTell("the text of the topic")
                return number
        raise Undecodable("it names no topic" if name is None else "it names another topic")

    def check(self, entry: int, values: Sequence[object]) -> None:
        """Raises Undecodable where a record names no place to send it to, and CannotTell."""
        if self.made[entry]:
            return
        if self.of_entry[entry] == BY_ROW:
            self.of_record(entry, values)
        if column := self._partitioned_by[entry]:
            number = self._told(column, values)
            if isinstance(number, int) and number < 0:
                raise Undecodable("its partition is negative")

    def _told(self, column: object, values: Sequence[object]) -> object:
        if column not in self._columns:
            raise CannotTell("the column that names the place is not configured any more")
        found = values[self._columns.index(str(column))]
        if found is NOT_VERIFIABLE:
            raise CannotTell("the name of the place")
        return found

    def likely(self, entry: int, held: Collection[int], whole: Collection[bool]) -> int:
        """The topic of a record that nobody can tell: one that holds it, or may have lost it."""
        listed = self._listed[entry]
        lost = [number for number, each in enumerate(whole) if not each and number in listed]
        return next((each for each in listed if each in held), [*lost, *listed][0])


def _topics(entry: LedgerEntry) -> list[str]:
    """The topics of an entry: a list where a column chooses, else the name of one."""
    told = entry.config.get("kafka")
    return [told] if isinstance(told, str) else [*map(str, told or ())]


def _number(listed: list[int], column: object) -> int:
    if not listed:
        return FUNCTION
    return listed[0] if column is None else BY_ROW
