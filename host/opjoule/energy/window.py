"""Energy inside a window, with the uncertainty of its edges and of lost samples.

Samples are placed on the meter's clock, and a microcontroller's resonator can be thousands of ppm off. So the
length of a window comes from a better clock if there is one: the board's, on which the window was defined, or the
host's, which round trips relate to the meter's. The mean power of a window needs no seconds at all.

A gap whose charge the meter recovered is exact if it lies inside the window, but for the times of bus readings in it:
their current is taken as the mean of the others. In any other gap, the current is assumed to be the mean of the
adjacent samples. Its uncertainty is the wider of two bounds: the least and greatest current around the gap, clipped to
the sensor's range (rectangular distribution), and the error of the same filling on stretches of the same length
elsewhere in the window, where the samples did arrive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opjoule.base.errors import GapError, WindowError
from opjoule.base.units import Cause, Quantity, unstated
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.budget import Budget, VoltageDoubt, half_slots_s, sampling_u_j, seen_share, steps_u_w, voltage_doubt
from opjoule.energy.cells import Cells, LostCell
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, SQRT3, ErrorBounds
from opjoule.energy.step_integral import NS
from opjoule.energy.systematic import Integrals, systematic
from opjoule.energy.trace.power_trace import PowerTrace

TRIALS_MIN: Final = 20
"""Least number of stretches for an estimate of the filling error."""


@dataclass(frozen=True)
class Loss:
    """The lost part of a window."""

    standard_u_j: float
    unknown_s: float
    """Time in gaps without a known charge [s]."""
    lost_samples: int
    bounds_j: tuple[float, float]
    """Least and greatest energy in the gaps without a known charge [J], all gaps at their bounds together."""


@dataclass(frozen=True)
class _Part:
    """The part of one gap that lies inside the window."""

    standard_u_j: float
    unknown_s: float
    least_j: float
    greatest_j: float


def loss_in(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> Loss:
    """The loss inside one window [meter_ns]."""
    lost = [one for one in cells.lost if _overlap_ns(one, start_ns, end_ns) > 0]
    if not lost:
        return Loss(0.0, 0.0, 0, (0.0, 0.0))
    elsewhere = _FillingError(cells, start_ns, end_ns)
    parts = [_part(cells, one, _overlap_ns(one, start_ns, end_ns), sensor, elsewhere) for one in lost]
    return Loss(
        standard_u_j=math.hypot(*(part.standard_u_j for part in parts)),
        unknown_s=math.fsum(part.unknown_s for part in parts),
        lost_samples=sum(one.gap.lost_samples for one in lost),
        bounds_j=(math.fsum(part.least_j for part in parts), math.fsum(part.greatest_j for part in parts)),
    )


def _overlap_ns(lost: LostCell, start_ns: int, end_ns: int) -> int:
    return min(lost.gap.end_meter_ns, end_ns) - max(lost.gap.start_meter_ns, start_ns)


def _part(cells: Cells, lost: LostCell, overlap_ns: int, sensor: ErrorBounds, elsewhere: _FillingError) -> _Part:
    inside_s, whole_s = overlap_ns * NS, lost.gap.duration_ns * NS
    current_a, voltage_v = float(cells.current_a[lost.cell]), float(cells.voltage_v[lost.cell])
    least_a = max(lost.current_min_a, sensor.current_min_a)
    greatest_a = max(min(lost.current_max_a, sensor.current_max_a), least_a)
    voltage_u_j = abs(current_a * lost.voltage_step_v) * inside_s / (2 * SQRT3)
    if lost.gap.charge_c is None:
        half_a = max(greatest_a - current_a, current_a - least_a, 0.0)
        bounds_u_j = half_a * voltage_v * inside_s / SQRT3
        filling_u_j = elsewhere.standard_u_w(lost.gap.duration_ns) * inside_s
        standard_u_j = math.hypot(max(bounds_u_j, filling_u_j), voltage_u_j)
        ends_j = least_a * voltage_v * inside_s, greatest_a * voltage_v * inside_s
        return _Part(standard_u_j, inside_s, *ends_j)
    charge_u_c = _cut_charge_u_c(current_a, least_a, greatest_a, inside_s, whole_s)
    converted_s = lost.gap.lost_samples * cells.shortest_ns * NS
    slots_u_j = elsewhere.slots_u_j((whole_s - converted_s) * inside_s / whole_s)
    return _Part(math.hypot(charge_u_c * voltage_v, voltage_u_j, slots_u_j), 0.0, 0.0, 0.0)


def _cut_charge_u_c(mean_a: float, least_a: float, greatest_a: float, inside_s: float, whole_s: float) -> float:
    """Standard uncertainty [C] of the part of a known charge that flowed on one side of a window's edge."""
    outside_s = whole_s - inside_s
    if outside_s <= 0:
        return 0.0
    most_c = min((greatest_a - mean_a) * inside_s, (mean_a - least_a) * outside_s)
    fewest_c = min((mean_a - least_a) * inside_s, (greatest_a - mean_a) * outside_s)
    return max(most_c, fewest_c, 0.0) / SQRT3


class _FillingError:
    """Error of what is filled from other samples in a gap, estimated where the samples did arrive."""

    def __init__(self, cells: Cells, start_ns: int, end_ns: int) -> None:
        inside = cells.inside(start_ns, end_ns)
        power_w = cells.of_samples(cells.current_a, inside) * cells.of_samples(cells.voltage_v, inside)
        self._running = np.concatenate([np.zeros(1), np.cumsum(power_w)])
        self._period_ns = max(cells.period_ns, 1)
        self._known: dict[int, float] = {}
        slots_s = 2.0 * half_slots_s(cells, start_ns, end_ns)
        self._slot_s = float(np.median(slots_s)) if slots_s.size else 0.0
        self._row = 2 * power_w.size // max(slots_s.size, 1)

    def slots_u_j(self, unconverted_s: float) -> float:
        """Standard uncertainty [J] of a gap of known charge from the times of bus readings between its conversions.

        Their power is taken as that of the conversions around, up to the next of these times; the errors of several are
        independent. `unconverted_s`: sum of these times; 0 or less: there are none.
        """
        if unconverted_s <= 0.0 or not self._slot_s:
            return 0.0
        length = max(round(self._slot_s / (self._period_ns * NS)), 1)
        error_w = self._error_w(length, max(self._row // 2, 2))
        return error_w * math.sqrt(unconverted_s * self._slot_s)

    def standard_u_w(self, duration_ns: int) -> float:
        """Root mean square error [W] of the mean power of a stretch filled like a gap of this length."""
        length = max(round(duration_ns / self._period_ns), 1)
        if length not in self._known:
            self._known[length] = self._error_w(length, max(length, 2))
        return self._known[length]

    def _error_w(self, length: int, near: int) -> float:
        """Root mean square error [W] of the mean of `length` samples as predicted by `near` on either side."""
        running = self._running
        starts = np.arange(near, running.size - 1 - length - near + 1)
        if starts.size < TRIALS_MIN:
            return 0.0
        truth = (running[starts + length] - running[starts]) / length
        before = running[starts] - running[starts - near]
        behind = running[starts + length + near] - running[starts + length]
        error = truth - (before + behind) / (2 * near)
        return float(np.sqrt(np.mean(error**2)))


def alignment_u_j(
    cells: Cells, start_ns: int, end_ns: int, u_ns: float, u_duration_ns: float, seen_fraction: float = 1.0
) -> float:
    """Standard uncertainty [J] from the window's uncertain position.

    Position: half of the greater change of the energy if the window moves by k = 2 times its uncertainty, either way.
    Length: difference between the power at the edges and the mean, times the uncertainty of the length. The seconds of
    the window do not come from the meter, so that a window placed too long changes its mean power alone.
    Resolution: the position of a load step within the sample that an edge cuts is unknown.

    Args:
        u_ns, u_duration_ns: standard uncertainties of the window's position and length on the meter's clock.
        seen_fraction: part of a sample's period in which it is converted.
    """
    shift_ns = np.array([-1, 1], np.int64) * max(round(2 * u_ns), 1 if u_ns > 0 else 0)
    energy_j = cells.power.between(start_ns, end_ns)
    moved_j = cells.power.between(start_ns + shift_ns, end_ns + shift_ns)
    place_u_j = float(np.max(np.abs(moved_j - energy_j))) / 2
    edges = cells.power.cell_at([start_ns, end_ns])
    mean_w = energy_j / ((end_ns - start_ns) * NS)
    edge_w = float(np.max(np.abs(cells.power.values(edges) - mean_w)))
    cut_u_j = _cut_samples_u_j(cells, start_ns, end_ns, 2 * u_ns * NS, seen_fraction)
    return math.hypot(place_u_j, edge_w * u_duration_ns * NS, cut_u_j)


@dataclass(frozen=True)
class _CutSample:
    """The sample that an edge of the window cuts, and its neighbours."""

    outside_w: float
    own_w: float
    inside_w: float
    length_s: float
    inside_s: float
    """The part of it inside the window."""

    place_s: float
    """Expanded uncertainty of the edge's time (k = 2)."""

    @property
    def missing_j(self) -> float:
        """Energy missing from the window if the sample contains a single step of the load; negative: excess. The
        sample's mean determines the position of the step. An even split of the sample gives the window too little, most
        of all if the step is at the edge.
        """
        above_w, below_w = self.own_w - self.outside_w, self.inside_w - self.own_w
        if above_w * below_w <= 0:  # a single step cannot make such a sample
            of_outside_j, of_inside_j = above_w * (self.length_s - self.inside_s), below_w * self.inside_s
            return max(of_outside_j, of_inside_j, key=abs)
        step_s = self.length_s * above_w / (above_w + below_w)
        inside_s = min(max(step_s, self.inside_s - self.place_s), self.inside_s + self.place_s)
        return float(min(above_w * (self.length_s - inside_s), below_w * inside_s, key=abs))

    @property
    def unseen_j(self) -> float:
        """Missing energy if the step may have been outside the conversion: at most a quarter of it, in the middle."""
        return (self.inside_w - self.outside_w) * self.length_s / 4


def _cut_samples_u_j(cells: Cells, start_ns: int, end_ns: int, place_s: float, seen_fraction: float) -> float:
    """Standard uncertainty [J] from the samples at both edges, rectangular.

    A window that draws more than its surroundings misses energy at both ends, and one that draws less has excess at
    both: the two errors add up. If one end has excess and the other misses energy, the larger counts.
    """
    first, last = cells.power.cell_at([start_ns, end_ns]).tolist()
    bounds_ns = cells.bounds_ns[[first, first + 1, last, last + 1]].tolist()

    def power_w(cell: int) -> float:
        return float(cells.power.values(np.array([min(max(cell, 0), cells.current_a.size - 1)]))[0])

    if last <= first + 1:  # no whole sample shows the power inside the window
        whole_s, inside_s = (bounds_ns[3] - bounds_ns[0]) * NS, (end_ns - start_ns) * NS
        own_w = float(cells.power.between(bounds_ns[0], bounds_ns[3])) / whole_s
        around_w = (power_w(first - 1) + power_w(last + 1)) / 2
        return float(abs(own_w - around_w) * (whole_s - inside_s) / SQRT3)

    def cut(cell: int, inwards: int, length_ns: int, inside_ns: int) -> _CutSample:
        outside_w, own_w, inside_w = (power_w(cell + offset) for offset in (-inwards, 0, inwards))
        return _CutSample(outside_w, own_w, inside_w, length_ns * NS, inside_ns * NS, place_s)

    both = (
        cut(first, 1, bounds_ns[1] - bounds_ns[0], bounds_ns[1] - start_ns),
        cut(last, -1, bounds_ns[3] - bounds_ns[2], end_ns - bounds_ns[2]),
    )
    edges_j = [edge.missing_j if seen_fraction >= 1.0 else edge.unseen_j for edge in both]
    lacking_j = sum(energy_j for energy_j in edges_j if energy_j > 0)
    too_much_j = -sum(energy_j for energy_j in edges_j if energy_j < 0)
    return max(lacking_j, too_much_j) / SQRT3


LOST_FRACTION_MAX = 0.1
"""Limit for the part of a window that may be lost without its charge; above it there is no energy."""


@dataclass(frozen=True)
class Timebase:
    """The seconds of one window."""

    clock: str
    """Clock that gives the seconds: "board", "host" or "meter"."""
    rate: float
    """Seconds of that clock per second of the meter's, over the window."""
    error_max: float
    """Relative bound of that clock's oscillator, rectangular."""
    u_rate: float = 0.0
    """Standard uncertainty of `rate`; 0 if the window was defined on that clock itself."""

    @property
    def relative_u(self) -> float:
        """Relative standard uncertainty of the window's seconds."""
        return math.hypot(self.error_max / SQRT3, self.u_rate)

    @classmethod
    def defined_on(cls, clock: str, length_ns: int, meter_length_ns: int) -> Timebase:
        """Timebase of a window defined on a computer's clock: its length there is exact, whatever the map."""
        return cls(clock, length_ns / meter_length_ns if meter_length_ns > 0 else 1.0, CRYSTAL_ERROR_MAX)

    @classmethod
    def through(cls, meter_to_other: ClockMap, start_meter_ns: int, end_meter_ns: int) -> Timebase:
        """Timebase of a window defined on the meter's clock, its length converted to a computer's clock."""
        length_ns = meter_to_other.to_target(end_meter_ns) - meter_to_other.to_target(start_meter_ns)
        meter_length_ns = max(end_meter_ns - start_meter_ns, 1)
        u_rate = meter_to_other.u_duration_ns(start_meter_ns, end_meter_ns) / meter_length_ns
        return cls(meter_to_other.target, length_ns / meter_length_ns, CRYSTAL_ERROR_MAX, u_rate)

    @classmethod
    def of_meter(cls, sensor: ErrorBounds) -> Timebase:
        """Seconds of the meter's own clock, without a better one."""
        return cls("meter", 1.0, sensor.clock_error_max)

    def stated(self) -> dict[str, Any]:
        """`timebase` of result.json."""
        return {
            "clock": self.clock,
            "seconds_per_meter_second": self.rate,
            "error_max": self.error_max,
            "relative_u": 2.0 * self.relative_u,
        }


@dataclass(frozen=True)
class Window:
    """A stretch of the meter clock."""

    start_ns: int
    end_ns: int
    u_ns: float
    """Standard uncertainty of the window's position: both edges move together [ns]."""
    u_duration_ns: float = 0.0
    """Standard uncertainty of the window's length on the meter's clock [ns]."""
    timebase: Timebase | None = None
    """Clock of the window's seconds; None: the meter's own."""

    @property
    def duration_s(self) -> float:
        """Length [s], by the best available clock."""
        rate = self.timebase.rate if self.timebase else 1.0
        return (self.end_ns - self.start_ns) * 1e-9 * rate

    @classmethod
    def on_meter(cls, board_to_meter: ClockMap, start_board_ns: int, end_board_ns: int) -> Window:
        """Window between two times of the board's clock, which gives its seconds, with the map's uncertainty."""
        u_ns = board_to_meter.u_ns((start_board_ns + end_board_ns) // 2)
        u_duration_ns = board_to_meter.u_duration_ns(start_board_ns, end_board_ns)
        start_ns, end_ns = board_to_meter.to_target(start_board_ns), board_to_meter.to_target(end_board_ns)
        lengths_ns = end_board_ns - start_board_ns, end_ns - start_ns
        timebase = Timebase.defined_on(board_to_meter.source, *lengths_ns)
        return cls(start_ns, end_ns, u_ns, u_duration_ns, timebase)

    @classmethod
    def of_meter(cls, start_ns: int, end_ns: int, meter_to_host: ClockMap | None) -> Window:
        """Window exactly known on the meter's clock; its seconds are the host's if there is a map, else the meter's."""
        timebase = Timebase.through(meter_to_host, start_ns, end_ns) if meter_to_host else None
        return cls(start_ns, end_ns, 0.0, timebase=timebase)


@dataclass(frozen=True)
class EnergyResult:
    """Energy of a window and where its uncertainty comes from; idle power is not subtracted."""

    energy: Quantity
    """[J], expanded. If samples of the window are clipped, it is a lower bound without an uncertainty."""
    budget: Budget
    window: Window
    timebase: Timebase
    """Source of the seconds."""
    integrals: Integrals
    """Factors of the sensor's errors."""
    voltage: VoltageDoubt
    """Uncertainty of the voltage between its readings; the resistance is common to all windows of a trace."""
    seen_share: float
    """Part of the window in which the current was converted."""
    lost_s: float
    """Time within the window in gaps without a known charge [s]."""
    lost_samples: int
    """Lost conversions in all gaps that touch the window, including gaps with a known charge."""
    lost_bounds_j: tuple[float, float]
    """Least and greatest possible energy in the gaps without a known charge [J]."""
    clipped_samples: int = 0
    """Samples of the window at the end of the meter's range, including lost ones known to have been there."""
    clipped_s: float = 0.0
    """Time within the window in such samples and in gaps that contain one [s]."""

    @property
    def mean_power_w(self) -> float:
        """Energy over duration [W]."""
        return float(self.energy) / self.window.duration_s

    @property
    def power(self) -> Quantity:
        """Energy over duration [W]. The timebase scales both and cancels in the quotient."""
        budget, energy = self.budget.with_part("timebase", 0.0), self.energy
        known = energy if energy.u is None else budget.energy(float(energy))
        return known.scale(1.0 / self.window.duration_s, "W")


def window_energy_j(trace: PowerTrace | Cells, window: Window, sensor: ErrorBounds) -> EnergyResult:
    """Energy drawn inside one window, partial samples at both edges included.

    Args:
        trace: samples on the meter clock; for many windows of one trace pass `Cells.of(trace)`.
        window: start and end on the meter clock [ns], with their standard uncertainty.
        sensor: error bounds and range of the sensor.
    Returns: energy [J] with expanded uncertainty and budget; idle power is not subtracted.
    Raises:
        WindowError: the window is empty or reaches outside the trace.
        GapError: lost samples cover more of the window than LOST_FRACTION_MAX.
    Source: midpoint cells; uncertainty after JCGM 100:2008, 5.1.2; docs/method/energy.md.
    """
    cells = trace if isinstance(trace, Cells) else Cells.of(trace)
    _check_covered(cells, window)
    loss = loss_in(cells, window.start_ns, window.end_ns, sensor)
    _check_lost(loss, window)
    timebase = window.timebase or Timebase.of_meter(sensor)
    rate = timebase.rate
    span, known = (window.start_ns, window.end_ns), (window.u_ns, window.u_duration_ns)
    integrals = Integrals.between(cells, *span, rate, sensor)
    energy_j = integrals.energy_j
    steps_u_j = steps_u_w(cells, [span], sensor) * window.duration_s
    doubt = voltage_doubt(cells, *span)
    shared = systematic(sensor, integrals)
    parts = {
        **shared.parts,
        "quantisation": math.hypot(steps_u_j, sampling_u_j(cells, *span, sensor) * rate),
        "voltage": doubt.standard_u_j * rate,
        "timebase": abs(energy_j) * timebase.relative_u,
        "alignment": alignment_u_j(cells, *span, *known, sensor.seen_fraction) * rate,
        "loss": loss.standard_u_j * rate,
    }
    absent = {"baseline": "idle power is not subtracted", "repeats": "one run"}
    budget = Budget(parts, absent, shared.shared, shared.excess)
    clipped_samples = cells.clipped_samples(*span)
    return EnergyResult(
        energy=stated_energy(budget, energy_j, clipped_samples),
        budget=budget,
        window=window,
        timebase=timebase,
        integrals=integrals,
        voltage=VoltageDoubt(doubt.spread_u_j * rate, doubt.joule_per_ohm * rate, doubt.resistance_u_ohm),
        seen_share=seen_share(cells, *span, sensor),
        lost_s=loss.unknown_s * rate,
        lost_samples=loss.lost_samples,
        lost_bounds_j=(loss.bounds_j[0] * rate, loss.bounds_j[1] * rate),
        clipped_samples=clipped_samples,
        clipped_s=cells.clipped_s(*span) * rate,
    )


def stated_energy(budget: Budget, energy_j: float, clipped_samples: int) -> Quantity:
    """The energy with the budget's uncertainty, or without any if samples are clipped.

    The power beyond the end of the range is unknown, so that no interval would be valid.
    """
    if not clipped_samples:
        return budget.energy(energy_j)
    reason = f"{clipped_samples} samples at the end of the meter's range: {Cause.LOWER_BOUND}"
    return Quantity(energy_j, None, "J", reason=reason, cause=Cause.LOWER_BOUND)


def seen(results: Sequence[EnergyResult]) -> Quantity:
    """Part of the time of some windows in which the current was converted, for result.json."""
    share = sum(result.seen_share for result in results) / len(results)
    return unstated(share, "1", "counted: the conversions that arrived, over the time that they cover")


def _check_covered(cells: Cells, window: Window) -> None:
    length_ns = window.end_ns - window.start_ns
    if length_ns <= 0:
        raise WindowError(f"window of {length_ns} ns: its end must come after its start")
    if window.start_ns < cells.start_ns or window.end_ns > cells.end_ns:
        raise WindowError(
            f"window {_s(window.start_ns)} to {_s(window.end_ns)} s reaches outside the power trace "
            f"({_s(cells.start_ns)} to {_s(cells.end_ns)} s on the meter clock): "
            "record longer, or check the clock map"
        )


def _check_lost(loss: Loss, window: Window) -> None:
    fraction = loss.unknown_s / ((window.end_ns - window.start_ns) * 1e-9)
    if fraction > LOST_FRACTION_MAX:
        raise GapError(
            f"{100 * fraction:.1f} % of window {_s(window.start_ns)} to {_s(window.end_ns)} s was lost "
            f"({loss.lost_samples} samples), limit {100 * LOST_FRACTION_MAX:.1f} %: "
            "check the meter's cable and the host's load, or split an imported file at its pauses"
        )


def _s(time_ns: int) -> str:
    return f"{time_ns * 1e-9:.6f}"
