"""What samples of JSON have at each place: their kinds of values, in the objects and arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rivermouth.formats.strict_json.document import read
from rivermouth.formats.strict_json.scalars import Bad, Number

_DEEPEST = 30
"""Below so many objects and arrays in each other all is text: a type may not be nested deeper."""
_MAP_NAMES, _MAP_OBJECTS, _MAP_SHARE = 12, 10, 3
"""An object is a map if samples have so many names, in so many objects, and each object has but one
of so many of these."""


def document(value: bytes) -> object:
    """The object or array of a JSON text, as ``strict_json.document`` has it. Raises Bad."""
    if not value.lstrip().startswith(b"["):
        return read(value, spelt=False)
    members = read(b'{"":' + value + b"}", spelt=False)
    if len(members) > 1:
        raise Bad("something stands after the array")
    [pair] = members
    assert isinstance(pair, tuple)
    return pair[1]


@dataclass
class Seen:
    """The values at one place: null or missing ones are not counted.

    ``together`` are names that one object had in two spellings, which differ in case alone;
    ``repeated`` says that one had a name twice; ``deep`` that values are nested too deeply.
    """

    scalars: list[object] = field(default_factory=list)
    objects: int = 0
    arrays: int = 0
    members: dict[str, Seen] = field(default_factory=dict)
    items: Seen | None = None
    together: set[str] = field(default_factory=set)
    repeated: bool = False
    deep: bool = False

    def add(self, value: object, depth: int = 0) -> None:
        """Take one more value."""
        if depth > _DEEPEST:
            self.deep = True
        elif isinstance(value, tuple):
            self._add_object(value, depth)
        elif isinstance(value, list):
            self.arrays += 1
            self.items = self.items or Seen()
            for each in value:
                self.items.add(each, depth + 1)
        elif value is not None:
            self.scalars.append(value)

    def _add_object(self, members: tuple[tuple[str, object], ...], depth: int) -> None:
        self.objects += 1
        names = {name for name, _ in members}
        self.repeated |= len(names) < len(members)
        spellings = Counter(name.lower() for name in names)
        self.together |= {name for name, count in spellings.items() if count > 1}
        for name, value in members:
            self.members.setdefault(name, Seen()).add(value, depth + 1)

    def merge(self, other: Seen) -> None:
        """Take the values of another place."""
        self.scalars += other.scalars
        self.objects += other.objects
        self.arrays += other.arrays
        self.together |= other.together
        self.repeated |= other.repeated
        self.deep |= other.deep
        for name, each in other.members.items():
            self.members.setdefault(name, Seen()).merge(each)
        if other.items is not None:
            self.items = self.items or Seen()
            self.items.merge(other.items)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its values, in words: a plural each."""
        found = {_kind(each) for each in self.scalars}
        found |= {"objects"} if self.objects else set()
        return frozenset(found | ({"arrays"} if self.arrays else set()))

    @property
    def is_map(self) -> bool:
        """Whether the names of its objects are data: many, of which each object has few."""
        names = sum(each.present for each in self.members.values())
        many = len(self.members) >= _MAP_NAMES and self.objects >= _MAP_OBJECTS
        return many and names * _MAP_SHARE <= len(self.members) * self.objects

    @property
    def present(self) -> int:
        """How many values there are."""
        return len(self.scalars) + self.objects + self.arrays

    def any_repeated(self) -> bool:
        """Whether an object has a name twice, here or inside."""
        return self.repeated or any(each.any_repeated() for each in self._inside())

    def _inside(self) -> Iterator[Seen]:
        yield from self.members.values()
        if self.items is not None:
            yield self.items


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "numbers" if type(value) is Number else "texts"
