"""Definition of a quantity of result.json: name, unit, words, formula, and the places that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal

from opjoule.base.units import Quantity
from opjoule.runs.evaluation.quantities.figures import Figures, over_repeats
from opjoule.runs.evaluation.quantities.repeat import Repeat

FIRST: Final = -1
LAST: Final = 1

Formula = Callable[[Any], Quantity]
"""Quantity of one repeat, or of one phase that the work marked in it."""
Place = Literal["headline", "tile", "column", "line", "traced", "compared", "budget", "table"]

ALL_TOLD: Final = "all_told_energy_per_operation_j"
"""Key of the energy above idle that an operation of a kind causes in all, now and later."""


def told_path(kind: str) -> str:
    """Path of a kind's cost all told in result.json."""
    return f"by_operation.{kind}.{ALL_TOLD}"


class Topic(StrEnum):
    """Topic of a quantity; quantities are listed in the order of their topics."""

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
    """Evidence for the quality of the other quantities."""
    PART = "part"
    """A part of a breakdown, which has its own table."""
    SENSOR = "sensor"
    """A quantity of an additional sensor."""


_ORDER: Final = tuple(Topic)


@dataclass(frozen=True)
class Definition:
    """One quantity of result.json."""

    key: str
    """Dotted path in result.json; a `*` matches any name, as in `by_operation.*.count`."""
    unit: str
    topic: Topic
    label: str = ""
    meaning: str = ""
    formula: Formula | None = None
    """None if the measurement, not a repeat, gives the quantity."""
    over: Callable[[Sequence[Quantity]], Quantity] = over_repeats
    """Function that combines the figures of all repeats."""
    rests_on: tuple[str, ...] = ()
    """Groups among ENERGY, ABOVE_IDLE and PER_OPERATION whose faults withhold the quantity."""
    required: bool = True
    """Whether a result must contain the quantity, or the reason for its absence."""
    of_sensors: bool = False
    """Whether the meter's additional sensors have this quantity too."""
    headline: str = ""
    """Words after the number in the answer; empty if the quantity is not part of the answer."""
    tile: str = ""
    """Name among the report's tiles, if it is one."""
    column: str = ""
    """Heading in the table of repeats, if it has a column there."""
    line: tuple[str, str] | None = None
    """Name and note in the terminal's table; a {path} in the note is replaced by that quantity's text."""
    traced: str = ""
    """Name in the summary of a power trace on its own, if such a trace has it."""
    compared: bool = False
    """Whether conditions are compared by it."""
    budget: str = ""
    """Key of its uncertainty budget in result.json, if it has one."""
    rank: Mapping[Place, int] = field(default_factory=lambda: MappingProxyType({}))
    """Place -> rank, if the place has its own order: lower ranks come first, the default is 0."""

    @property
    def top(self) -> str:
        """The top-level key of result.json that contains it."""
        return self.key.partition(".")[0]


class Quantities:
    """A table of quantities in reading order: by topic, then as given."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        """Raises ValueError if two have the same key."""
        self._of_key: dict[str, Definition] = {}
        for definition in sorted(definitions, key=lambda definition: _ORDER.index(definition.topic)):
            if definition.key in self._of_key:
                raise ValueError(f"two quantities have the key {definition.key}")
            self._of_key[definition.key] = definition

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._of_key.values())

    def __contains__(self, path: object) -> bool:
        return path in self._of_key

    def get(self, path: str) -> Definition | None:
        """The quantity at a path of result.json."""
        return self._of_key.get(path)

    def named(self, path: str) -> Definition | None:
        """The quantity at a path, also one of a kind, as `by_operation.read.energy_per_operation_j`."""
        if path in self._of_key:
            return self._of_key[path]
        parts = path.split(".")
        for definition in self:
            wanted = definition.key.split(".")
            if "*" in wanted and len(wanted) == len(parts):
                kinds = [part for part, want in zip(parts, wanted, strict=True) if want == "*"]
                if all(want in ("*", part) for part, want in zip(parts, wanted, strict=True)):
                    words = parts[-1].removesuffix("_j").replace("_", " ")
                    label = definition.label.replace("*", " ".join(kinds)) or f"{words} ({' '.join(kinds)})"
                    return replace(definition, key=path, label=label)
        return None

    def below(self, top: str) -> list[Definition]:
        """The quantities under one key of result.json, including the key's own."""
        return [definition for definition in self if definition.top == top]

    def shown(self, place: Place) -> list[Definition]:
        """The quantities shown at a place, in that place's order."""
        return sorted(
            (definition for definition in self if getattr(definition, place, True)),
            key=lambda definition: definition.rank.get(place, 0),
        )

    @property
    def headline(self) -> Definition:
        """The headline: the first quantity of the answer."""
        return self.shown("headline")[0]

    def without(self, group: str) -> Quantities:
        """The table without the quantities that depend on a group."""
        return Quantities(definition for definition in self if group not in definition.rests_on)

    def resting_on(self, group: str) -> list[str]:
        """The keys of result.json that a fault of this group makes wrong."""
        return list(dict.fromkeys(definition.top for definition in self if group in definition.rests_on))

    def changed(self, changes: Mapping[str, Mapping[str, Any]]) -> Quantities:
        """The table with changed fields of some quantities, by key."""
        return Quantities(replace(definition, **changes.get(definition.key, {})) for definition in self)

    def figures(self, repeat: Repeat) -> Figures:
        """All figures of one repeat by path, without those of its phases."""
        return {of.key: of.formula(repeat) for of in self if of.formula and "*" not in of.key}

    def over_repeats(self, repeats: Sequence[Figures]) -> dict[str, Any]:
        """Each figure over all repeats, in the form of result.json: figures of one group are nested under its key."""
        entries: dict[str, Any] = {}
        for path in repeats[0]:
            *above, name = path.split(".")
            into = entries
            for part in above:
                into = into.setdefault(part, {})
            into[name] = self._of_key[path].over([figures[path] for figures in repeats])
        return entries
