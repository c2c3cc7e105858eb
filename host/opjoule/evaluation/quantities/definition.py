"""Definition of a quantity of result.json: name, unit, words, formula, and the places where it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal

from opjoule.evaluation.quantities.figures import Figure, Figures, over_repeats
from opjoule.evaluation.quantities.repeat import Repeat
from opjoule.units import Missing, Quantity

FIRST: Final = -1
LAST: Final = 1

Formula = Callable[[Repeat], Figure | Missing]
Place = Literal["headline", "tile", "column", "line", "traced", "compared", "budget", "table"]


class Topic(StrEnum):
    """The topic of a quantity; quantities are listed in the order of their topics."""

    HEADLINE = "headline"
    """The answer."""
    ENERGY = "energy"
    POWER = "power"
    TIME = "time"
    WORK = "work"
    LATENCY = "latency"
    USAGE = "usage"
    """Use of processor, medium and memory."""
    CHECK = "check"
    """Evidence for the quality of the others."""
    PART = "part"
    """A part of a breakdown, which has a table of its own."""
    SENSOR = "sensor"
    """A quantity of a further sensor."""


_ORDER: Final = tuple(Topic)


@dataclass(frozen=True)
class Definition:
    """One quantity of result.json."""

    key: str
    """Dotted path in result.json; a `*` stands for any name, as in `by_operation.*.count`."""
    unit: str
    topic: Topic
    label: str = ""
    meaning: str = ""
    formula: Formula | None = None
    """Figure of one repeat; None where a repeat has none, and the measurement states it."""
    over: Callable[[Sequence[Figure | Missing]], Quantity] = over_repeats
    """Combines the figures of all repeats."""
    rests_on: tuple[str, ...] = ()
    """Groups among ENERGY, ABOVE_IDLE and PER_OPERATION whose faults withhold it."""
    required: bool = True
    """A result gives it, or says why not."""
    of_sensors: bool = False
    """Further sensors of the meter have it, too."""
    headline: str = ""
    """Words after the number in the answer; empty: it is no part of the answer."""
    tile: str = ""
    """Name among the report's tiles, if it is one of them."""
    column: str = ""
    """Heading in the table of repeats, if it has a column there."""
    line: tuple[str, str] | None = None
    """Name and note in the terminal's table; a {path} in the note stands for another quantity's text."""
    traced: str = ""
    """Name in the summary of a power trace on its own, if such a trace has it."""
    compared: bool = False
    """True if conditions are compared by it."""
    budget: str = ""
    """Key of its uncertainty budget in result.json, if it has one."""
    rank: Mapping[Place, int] = field(default_factory=lambda: MappingProxyType({}))
    """Place -> rank, if the place has its own order: lower ranks come first, the default is 0."""

    @property
    def top(self) -> str:
        """The key of result.json under which it stands."""
        return self.key.partition(".")[0]


class Quantities:
    """A table of quantities, in reading order: by topic, then as they were given."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        """Raises ValueError if two have one key."""
        self._of_key: dict[str, Definition] = {}
        for definition in sorted(definitions, key=lambda definition: _ORDER.index(definition.topic)):
            if definition.key in self._of_key:
                raise ValueError(f"two quantities have the key {definition.key}")
            self._of_key[definition.key] = definition

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._of_key.values())

    def get(self, path: str) -> Definition | None:
        """The quantity at a path of result.json."""
        return self._of_key.get(path)

    def below(self, top: str) -> list[Definition]:
        """The quantities under one key of result.json, that of the key itself included."""
        return [definition for definition in self if definition.top == top]

    def shown(self, place: Place) -> list[Definition]:
        """The quantities that have a place there, in its order."""
        return sorted(
            (definition for definition in self if getattr(definition, place, True)),
            key=lambda definition: definition.rank.get(place, 0),
        )

    @property
    def headline(self) -> Definition:
        """The headline: the first quantity of the answer."""
        return self.shown("headline")[0]

    def without(self, group: str) -> Quantities:
        """The table without what rests on a group."""
        return Quantities(definition for definition in self if group not in definition.rests_on)

    def resting_on(self, group: str) -> list[str]:
        """The keys of result.json that a fault of this group makes wrong."""
        return list(dict.fromkeys(definition.top for definition in self if group in definition.rests_on))

    def changed(self, changes: Mapping[str, Mapping[str, Any]]) -> Quantities:
        """The table with other fields of some quantities, by their key."""
        return Quantities(replace(definition, **changes.get(definition.key, {})) for definition in self)

    def figures(self, repeat: Repeat) -> Figures:
        """Every figure of one repeat by its path."""
        return {definition.key: definition.formula(repeat) for definition in self if definition.formula}

    def over_repeats(self, repeats: Sequence[Figures]) -> dict[str, Any]:
        """Each figure over all repeats, as it stands in result.json: those of one group below its key."""
        entries: dict[str, Any] = {}
        for path in repeats[0]:
            *above, name = path.split(".")
            into = entries
            for part in above:
                into = into.setdefault(part, {})
            into[name] = self._of_key[path].over([figures[path] for figures in repeats])
        return entries
