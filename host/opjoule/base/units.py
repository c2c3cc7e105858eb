"""Numbers with a unit and an interval, or with the reason why they have none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct, convert
from msgspec.structs import replace

from opjoule.base.coverage import COVERAGE_FACTOR, RECTANGULAR, coverage_factor, excess_kurtosis, excess_of, student_t

NOT_STATED: Final = "uncertainty not stated"
NOTHING: Final[Mapping[str, float]] = MappingProxyType({})
"""No shared errors."""


class Cause(StrEnum):
    """Why a value or its interval is missing, by the words with which the reason begins. Programs decide by it."""

    OTHER = ""
    """No cause of its own: the reason is all there is."""
    ABSENT = "not in result.json"
    WITHHELD = "withheld"
    """A fault makes the value wrong."""
    NO_IDLE = "no idle baseline (--idle 0)"
    NO_SETTLE = "the run was not followed by a settle phase"
    NO_SAMPLES = "no system samples of the run"
    LOWER_BOUND = "at least this"
    """Samples were at the end of the meter's range."""
    CLIPPED = "idle power clipped"
    """Samples of idle were; the value may be wrong either way."""
    NOT_REPORTED = "the engine reported none"
    NOT_FOUND = "not found"
    """The power does not show the part."""
    FEW_WINDOWS = "too few windows"
    TOO_WIDE = "interval too wide"
    COLLINEAR = "collinear"
    """The part always goes together with others."""
    TOO_BRIEF = "too short for this meter"
    MODEL_ONLY = "known only from a model of the medium"
    TAIL_OF_READS = "not separable from the medium's tail after reads"
    TOO_COARSE = "the counters are too coarse"
    RULE = "by a rule, not a measurement"
    """How the value was divided among parts is a convention."""
    IN_STEP = "in step with the meter's samples, and the meter converts the current only part of the time"

    @classmethod
    def _missing_(cls, value: object) -> Cause:
        """The cause of a file by a later or another program."""
        return cls.OTHER


class Quantity(Struct, frozen=True, omit_defaults=True):
    """A value with its expanded uncertainty u (95.45 %), both in `unit`, and the parts of its interval.

    The first six fields are those of a number in result.json (`stated`).
    """

    value: float | None
    """None: missing, for the `reason`."""
    u: float | None
    """0 for an exact count. None: not stated, for the `reason`."""
    unit: str
    k: float = COVERAGE_FACTOR
    """Expanded over standard uncertainty; stated in result.json if it is not 2."""
    reason: str = ""
    cause: Cause = Cause.OTHER
    shared: Mapping[str, float] = NOTHING
    """Source -> contribution of one standard uncertainty, with sign, in `unit`: errors in common with other quantities,
    such as a sensor's gain."""
    spread_u: float = 0.0
    """Standard error of the mean, from the scatter of repeats or runs, without Student's t."""
    freedom: float = math.inf
    """Degrees of freedom of `spread_u`; infinite for a single value, whose spread is unknown."""
    count: int = 1
    """Number of repeats, runs or blocks behind `spread_u`."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value or 0.0) and 0 <= (self.u or 0.0) < math.inf):
            raise ValueError(f"{self.value} +- {self.u} {self.unit} is not a number: give None and the reason")
        if self.value is None and not self.reason.strip():
            raise ValueError("a missing value needs a reason")

    @classmethod
    def from_standard(
        cls, value: float, standard_u: float, unit: str, excess: float = 0.0, shared: Mapping[str, float] | None = None
    ) -> Quantity:
        """The value with a standard uncertainty (k = 1) and the excess kurtosis of its error."""
        k = coverage_factor(excess)
        return cls(value, k * standard_u, unit, k, shared=shared or NOTHING)

    @classmethod
    def of_parts(
        cls,
        value: float,
        unit: str,
        common_u: float,
        excess: float,
        shared: Mapping[str, float],
        spread_u: float,
        freedom: float,
        count: int,
    ) -> Quantity:
        """The value with its interval from the standard uncertainty of all errors but the spread, their excess kurtosis
        and the spread, which Student's t widens.

        Source: JCGM 100:2008, 4.2.3 (spread of repeats), G.3 (Student's t), 5.1.2.
        """
        widened_u = spread_u * _widening(freedom)
        k = coverage_factor(excess_kurtosis([(common_u, excess), (widened_u, 0.0)]))
        u = k * math.hypot(common_u, widened_u)
        return cls(value, u, unit, k, shared=shared, spread_u=spread_u, freedom=freedom, count=count)

    @classmethod
    def mean(cls, runs: Sequence[Quantity]) -> Quantity:
        """Mean of several runs of one setting, with the spread between the runs. The other errors may be alike in all
        runs, so they do not average out. Raises: ValueError: no run, different units, or a run without an interval.
        """
        units = {run.unit for run in runs}
        if len(units) != 1:
            raise ValueError(f"no mean of {', '.join(sorted(units)) or 'nothing'}")
        if len(runs) == 1:
            return runs[0]
        shared = mean_shared(runs)
        common_u = math.hypot(fmean(run.own_u for run in runs), *shared.values())
        return cls.of_values(
            [float(run) for run in runs], units.pop(), common_u, fmean(run.excess for run in runs), shared
        )

    @classmethod
    def of_values(
        cls, values: Sequence[float], unit: str, common_u: float, excess: float, shared: Mapping[str, float]
    ) -> Quantity:
        """Mean of at least two values, with their spread beside the errors that they have in common."""
        count = len(values)
        spread_u = stdev(values) / math.sqrt(count)
        return cls.of_parts(fmean(values), unit, common_u, excess, shared, spread_u, count - 1.0, count)

    @classmethod
    def sum_of(cls, parts: Iterable[Quantity]) -> Quantity:
        """Sum of parts of one unit: shared errors add up with their signs, the others in quadrature.

        Source: JCGM 100:2008, 5.2.2.
        """
        listed = list(parts)
        sources = sorted({source for part in listed for source in part.shared})
        shared = {source: math.fsum(part.shared.get(source, 0.0) for part in listed) for source in sources}
        own_u = math.sqrt(math.fsum(part.own_u**2 for part in listed))
        return cls.from_standard(
            math.fsum(map(float, listed)), math.hypot(own_u, *shared.values()), listed[0].unit, shared=shared
        )

    def of_repeats(
        self, values: Sequence[float], shared: Mapping[str, float] | None = None, deviation: float | None = None
    ) -> Quantity:
        """The number, whose interval includes the spread of these values, with that spread and its shared errors.

        `deviation`: standard deviation of the values, if it is known already.
        """
        known = replace(self, shared=shared or NOTHING)
        if len(values) < 2:
            return known
        count = len(values)
        spread_u = (stdev(values) if deviation is None else deviation) / math.sqrt(count)
        return replace(known, spread_u=spread_u, freedom=count - 1.0, count=count)

    def with_spread(self, spread_u: float, freedom: float, count: int) -> Quantity:
        """The value with another spread; its other errors stay."""
        return Quantity.of_parts(
            float(self), self.unit, self.common_u, self.excess, self.shared, spread_u, freedom, count
        )

    def with_more(self, more: int) -> Quantity:
        """The value as it would be with more repeats of the present spread and mean."""
        count = self.count + more
        freedom = self.freedom * (count - 1) / (self.count - 1) if self.is_repeated else self.freedom
        return self.with_spread(self.spread_u * math.sqrt(self.count / count), freedom, count)

    def __float__(self) -> float:
        """The value. Raises: ValueError: it is missing; the message gives the reason."""
        if self.value is None:
            raise ValueError(self.reason)
        return float(self.value)

    @property
    def standard_u(self) -> float:
        """Standard uncertainty (k = 1). Raises: ValueError: not stated; the message gives the reason."""
        if self.u is None:
            raise ValueError(self.reason or NOT_STATED)
        return self.u / self.k

    @property
    def excess(self) -> float:
        """Excess kurtosis of all errors but the spread."""
        common_u = self.common_u
        whole = excess_of(self.k) * (self.standard_u / common_u) ** 4 if common_u else 0.0
        return max(whole, RECTANGULAR)

    @property
    def common_u(self) -> float:
        """Standard uncertainty without the spread."""
        widened_u = self.spread_u * _widening(self.freedom)
        return math.sqrt(max(self.standard_u**2 - widened_u**2, 0.0)) if widened_u else self.standard_u

    @property
    def own_u(self) -> float:
        """Standard uncertainty without the spread and without shared errors."""
        return math.sqrt(max(self.common_u**2 - sum(part**2 for part in self.shared.values()), 0.0))

    @property
    def has_interval(self) -> bool:
        """Whether both the value and its uncertainty are known."""
        return self.value is not None and self.u is not None

    @property
    def is_repeated(self) -> bool:
        """Whether the spread between repeats or runs is known."""
        return math.isfinite(self.freedom)

    @property
    def is_least(self) -> bool:
        """Whether it is a lower bound: samples were at the end of the meter's range."""
        return self.cause is Cause.LOWER_BOUND

    @property
    def unbounded(self) -> bool:
        """Whether no interval would be valid, not even from the spread."""
        return self.cause in (Cause.LOWER_BOUND, Cause.CLIPPED, Cause.RULE)

    @property
    def relative_u(self) -> float:
        """Expanded uncertainty over the value; infinite for a value of zero with an uncertainty, or without any."""
        if self.u is None or not self.value:
            return 0.0 if self.u == 0 else math.inf
        return self.u / abs(self.value)

    @property
    def stated(self) -> Quantity:
        """The fields of result.json alone."""
        return Quantity(self.value, self.u, self.unit, self.k, self.reason, self.cause)

    def absent(self, unit: str, whose: str = "") -> Quantity:
        """No value, for the same reason, after the words on whose it is."""
        return Quantity(None, None, unit, reason=whose + self.reason, cause=self.cause)

    def because(self, why: Quantity | None) -> Quantity:
        """The value with the reason and cause of another; without any for None."""
        return replace(self, reason=why.reason if why else "", cause=why.cause if why else Cause.OTHER)

    def scale(self, factor: float, unit: str | None = None) -> Quantity:
        """The quantity times an exact factor; a missing one stays missing."""
        size = abs(factor)
        return replace(
            self,
            value=None if self.value is None else self.value * factor,
            u=None if self.u is None else self.u * size,
            unit=unit or self.unit,
            shared={name: factor * part for name, part in self.shared.items()},
            spread_u=self.spread_u * size,
        )

    @property
    def log(self) -> Quantity:
        """Natural logarithm, to first order. Raises: ValueError: it is missing, or not above 0."""
        value = float(self)
        return replace(self.scale(1.0 / value if value > 0 else 1.0, "1"), value=math.log(value))

    def over(self, count: float, why: str, unit: str | None = None) -> Quantity:
        """The quantity divided by a count; missing without any, for the reason `why`."""
        if self.value is not None and not count:
            return missing(why, unit or self.unit)
        return self.scale(1.0 / count if count else 1.0, unit)

    def covers(self, truth: float) -> bool:
        """Whether `truth` lies inside value +- u."""
        return abs(float(self) - truth) <= (self.u or 0.0)

    def __neg__(self) -> Quantity:
        """The quantity with the opposite sign, for a difference by sum_of()."""
        return self.scale(-1.0)

    def without_interval(self, reason: str) -> Quantity:
        """The value alone, with the reason why its uncertainty is not stated; a count keeps its own."""
        if self.u is None or self.unit == "1":
            return self
        return Quantity(self.value, None, self.unit, reason=reason)


def _widening(freedom: float) -> float:
    """Factor by which Student's t widens a spread, over k = 2."""
    return student_t(max(freedom, 1.0)) / COVERAGE_FACTOR if math.isfinite(freedom) else 1.0


class Sharing(Protocol):
    """A budget or a quantity."""

    @property
    def shared(self) -> Mapping[str, float]:
        """Source -> signed contribution."""


def mean_shared(repeats: Sequence[Sharing]) -> dict[str, float]:
    """Contributions to the mean that other quantities share, by source."""
    names = {name for repeat in repeats for name in repeat.shared}
    return {name: fmean(repeat.shared.get(name, 0.0) for repeat in repeats) for name in sorted(names)}


def exact(value: float, unit: str) -> Quantity:
    """A counted or defined number, without uncertainty."""
    return Quantity(value, 0.0, unit)


def unstated(value: float, unit: str, reason: str, cause: Cause = Cause.OTHER) -> Quantity:
    """A value whose uncertainty is not stated, for this reason, which follows the words of its cause."""
    return Quantity(value, None, unit, reason=f"{cause}: {reason}" if cause else reason, cause=cause)


def missing(reason: str, unit: str = "", cause: Cause = Cause.OTHER) -> Quantity:
    """No value, for this reason, which follows the words of its cause; a cause may be the whole reason."""
    if isinstance(reason, Cause):
        return Quantity(None, None, unit, reason=str(reason), cause=reason)
    return Quantity(None, None, unit, reason=f"{cause}: {reason}" if cause else reason, cause=cause)


def from_json(entry: Mapping[str, Any] | Quantity) -> Quantity:
    """The quantity with these fields from result.json, which may have been read already."""
    if isinstance(entry, Quantity):
        return entry
    stated = {name: entry[name] for name in Quantity.__struct_fields__[:6] if entry.get(name) is not None}
    lacking = {} if "value" in stated else {"reason": "no reason recorded"}
    return convert({"value": None, "u": None, "unit": "", **lacking, **stated}, Quantity)


def k_words(numbers: Iterable[Quantity]) -> str:
    """The coverage factors of the stated uncertainties as text: "k = 2", "k = 1.93 to 2", or that none is stated."""
    known = sorted({f"{number.k:.3g}" for number in numbers if number.u is not None})
    return f"k = {' to '.join(dict.fromkeys((known[0], known[-1])))}" if known else NOT_STATED


def counted(count: int, noun: str) -> str:
    """A count with its noun, whose plural ends in s: "1 run", "2 runs"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
