"""Definition of a quantity of result.json, the data of a repeat that it is computed from, and its mean over repeats.

The repeats share their systematic errors (one sensor, one clock), which therefore do not average out. The spread
between repeats is a separate part. The interval of every quantity includes both.
Source: JCGM 100:2008, 4.2.3 (spread of repeats), G.3 (Student's t), 5.1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any, Final, Literal, Self

import pyarrow as pa

from opjoule.attribution.attributed_run import Attribution
from opjoule.base.units import Cause, Quantity, exact, mean_shared, missing
from opjoule.energy.baseline import IdlePower, MarginalEnergy
from opjoule.energy.budget import Budget
from opjoule.energy.operations.operation_table import Latency, OperationTable
from opjoule.energy.repeats import repeat_standard_u
from opjoule.energy.window import EnergyResult
from opjoule.runs.record.phases import Cycle
from opjoule.runs.record.result import RepeatValues

Figures = Mapping[str, Quantity]
"""Quantities of one repeat by their dotted path in result.json."""


def over_repeats(repeats: Sequence[Quantity]) -> Quantity:
    """Mean of one quantity over all repeats; missing if any repeat lacks it."""
    absent = [(number, one) for number, one in enumerate(repeats, 1) if one.value is None]
    if absent:
        number, lacking = absent[0]
        whose = f"repeat {number}: " if len(absent) < len(repeats) else ""
        return lacking.absent(lacking.unit, whose)
    if len(repeats) == 1:
        return repeats[0]
    values = [float(one) for one in repeats]
    if bound := next((one for one in repeats if one.unbounded), None):
        return Quantity(fmean(values), None, bound.unit).because(bound)
    stated = [one for one in repeats if one.u is not None]
    common_u = fmean(one.standard_u for one in stated) if stated else 0.0
    excess = sum(one.excess for one in stated) / len(repeats)
    return Quantity.of_values(values, repeats[0].unit, common_u, excess, mean_shared(repeats))


def total(repeats: Sequence[Quantity]) -> Quantity:
    """Sum of counts."""
    return exact(sum(map(float, repeats)), "1")


def by_repeat(repeats: Sequence[Figures]) -> dict[str, RepeatValues]:
    """Each quantity's value in each repeat and their standard deviation, in the form of result.json."""
    listed: dict[str, RepeatValues] = {}
    for path, first in repeats[0].items():
        values = [value for figures in repeats if (value := figures[path].value) is not None]
        if len(values) == len(repeats):
            spread = stdev(values) if len(values) > 1 else None
            listed[path] = RepeatValues(len(values), first.unit, tuple(values), spread)
    return listed


def mean_budget(budgets: Sequence[Budget], values_j: Sequence[float]) -> Budget:
    """Budget of a mean: each part's mean, because the repeats share it, and the spread of the values."""
    budget = budgets[0]
    for name in budget.parts:
        budget = budget.with_part(name, fmean(budget.parts.get(name, 0.0) for budget in budgets))
    excess = {name: fmean(budget.excess.get(name, 0.0) for budget in budgets) for name in budget.excess}
    budget = replace(budget, shared=mean_shared(budgets), excess=excess)
    return budget.with_part("repeats", repeat_standard_u(values_j)) if len(values_j) > 1 else budget


@dataclass(frozen=True)
class RepeatEnergy:
    """Energies of one repeat; those above idle are None if idle power is unknown."""

    run: EnergyResult
    whole: EnergyResult
    """Run and settle, including idle."""
    idle: IdlePower | None
    energy: MarginalEnergy | None
    """Run including idle, plus settle above idle."""
    marginal: MarginalEnergy | None
    """`energy` less idle power times the run's duration."""
    write_back: MarginalEnergy | None
    """Settle above idle; None also without a settle phase."""


@dataclass(frozen=True)
class MediumEnergy:
    """Energy of one repeat from a sensor in the medium's own supply."""

    marginal: MarginalEnergy | None
    """Run and settle above idle; None if idle power is unknown."""
    of_board: bool
    """Whether the medium draws from the board's supply, so that its energy is part of the board's."""


@dataclass(frozen=True)
class SystemSamples:
    """The board's samples of one repeat, from its run to its end, including settle and idle."""

    table: pa.Table
    """Columns as in system.parquet, cumulative unless stated otherwise there."""
    first: int
    """Rows of the last sample before the run and the first one after it."""
    last: int
    settled: int
    """Row of the first sample after settle; `last` without a settle phase."""
    cores: int

    @classmethod
    def of_cycle(cls, table: pa.Table, cycle: Cycle, cores: int) -> Self | Quantity:
        """The samples of one repeat; Missing without samples around its run."""
        if len(table) < 2:
            return missing(Cause.NO_SAMPLES)
        stamps = table.column("board_ns").to_numpy()
        first = max(int(stamps.searchsorted(cycle.work.start_board_ns, "right")) - 1, 0)
        ends_ns = [phase.end_board_ns for phase in (cycle.work, cycle.drain or cycle.work)]
        last, settled = (min(int(row), len(table) - 1) for row in stamps.searchsorted(ends_ns))
        return cls(table, first, last, settled, cores) if last > first else missing(Cause.NO_SAMPLES)

    @property
    def span_s(self) -> float:
        """Time from the first to the last sample of the run [s]."""
        stamps = self.table.column("board_ns")
        return float(stamps[self.last].as_py() - stamps[self.first].as_py()) * 1e-9

    def grown(self, column: str, *, settle: bool) -> float:
        """Increase of a cumulative column during the run, or during run and settle."""
        values = self.table.column(column)
        return float(values[self.settled if settle else self.last].as_py() - values[self.first].as_py())

    def peak(self, column: str) -> float:
        """The greatest value of a column from the start of the run on."""
        return float(max(self.table.column(column).to_numpy()[self.first :]))


@dataclass(frozen=True)
class Repeat:
    """One measured repeat. An additional sensor has only the energies."""

    number: int
    energy: RepeatEnergy
    run_s: float
    """Length of the run by the board's clock [s]."""
    settle_s: float | None = None
    """Length of settle [s]; None without that phase."""
    counted: int = 0
    """Operations of the run by the loader's own count."""
    operations: OperationTable = field(default_factory=OperationTable.empty)
    """The run's operations; empty if the log is off."""
    samples: SystemSamples | Quantity = field(default_factory=lambda: missing(Cause.NO_SAMPLES))
    attribution: Attribution | Quantity = field(default_factory=lambda: missing(Cause.NO_IDLE))
    harness: Quantity = field(default_factory=lambda: missing("the harness was not measured", "J"))
    """Energy of the loader itself for the same number of operations [J]."""
    core_w: float | None = None
    """Power above idle of a processor that is busy with the loader, without a database [W]; None if not measured."""

    medium: MediumEnergy | None = None
    """None without a sensor in the medium's own supply."""

    @property
    def latency(self) -> Latency | None:
        """Latency of the operations; None if none was logged."""
        return self.operations.latency

    @property
    def clock_u(self) -> float:
        """Relative standard uncertainty of the board's seconds."""
        return self.energy.run.timebase.relative_u


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
