"""Samples of supply current and voltage on the meter clock.

A sample's stamp is the centre of its current conversion. A lost conversion stays in the trace as a row of
NaN at its interpolated time, and lies inside a `Gap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opjoule.energy.trace.supply_line import BusReadings, SupplyLine, fit_supply_line

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
SPAN_MAX_S = 1e9
"""Longest span of a trace; a longer one shows times in another unit. 64 bits of nanoseconds hold 9 times as much."""
_GUESSED = 1000
_TOGETHER = 1 << 15


@dataclass(frozen=True)
class Gap:
    """A stretch of the meter clock from which no conversion arrived.

    The stretch covers exactly the cells of the lost conversions: it starts half a sample period after the
    centre of the last good sample and ends half a period before the centre of the next good one.
    """

    start_meter_ns: int
    end_meter_ns: int
    lost_samples: int
    """Number of conversions that were made but did not arrive; 0 if unknown (a reset, a pulled cable)."""
    charge_c: float | None
    """Integral of the current over the whole stretch [C], from the meter's running sums; None if unknown."""
    reason: str
    clipped_samples: int = 0
    """Number of lost samples at the end of the meter's range; if above 0, the charge is a lower bound."""

    def __post_init__(self) -> None:
        if self.end_meter_ns <= self.start_meter_ns:
            raise ValueError(f"gap ends at {self.end_meter_ns} ns, starts at {self.start_meter_ns} ns")

    @property
    def duration_ns(self) -> int:
        """Length of the stretch [ns]."""
        return self.end_meter_ns - self.start_meter_ns

    @classmethod
    def between(
        cls,
        last_good_ns: int,
        next_good_ns: int,
        lost_samples: int,
        reason: str,
        mean_current_a: float | None = None,
        clipped_samples: int = 0,
    ) -> Gap:
        """The gap between the centres of two good samples, with `lost_samples` evenly spaced conversions lost."""
        half_period_ns = (next_good_ns - last_good_ns) // (2 * (lost_samples + 1))
        start_ns, end_ns = last_good_ns + half_period_ns, next_good_ns - half_period_ns
        charge_c = None if mean_current_a is None else mean_current_a * (end_ns - start_ns) * 1e-9
        return cls(start_ns, end_ns, lost_samples, charge_c, reason, clipped_samples)

    def lost_centres_ns(self) -> Int64Array:
        """Interpolated centres of the lost conversions [meter_ns], shape (lost_samples,)."""
        # Floating point is exact to 1 ns for 100 days; the product of integers overflows 64 bits after 40 min at 1 kHz.
        middle = np.arange(self.lost_samples, dtype=np.float64) + 0.5
        after_ns = np.floor(middle * (self.duration_ns / max(self.lost_samples, 1)))
        return self.start_meter_ns + after_ns.astype(np.int64)


@dataclass(frozen=True)
class PowerTrace:
    """Current and voltage at the board's supply, on the meter clock.

    Raises: ValueError: shapes differ or stamps do not increase.
    """

    meter_ns: Int64Array
    """Centre of each current conversion [ns], int64, shape (n,), strictly increasing."""
    current_a: Float64Array
    """Mean current of the conversion [A], float64, shape (n,); NaN for a lost conversion."""
    voltage_v: Float64Array
    """Supply voltage [V], float64, shape (n,); NaN for a lost conversion."""
    gaps: tuple[Gap, ...] = field(default=())
    """Stretches without samples, in order of time, not overlapping."""
    clipped: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))
    """True where current or voltage was at the end of the meter's range, so that the true power may be higher. bool,
    shape (n,); all False if not given."""
    bus: BusReadings | None = None
    """Voltage readings, if the voltage is not converted with each current."""

    def __post_init__(self) -> None:
        if not self.clipped.size:
            object.__setattr__(self, "clipped", np.zeros(self.meter_ns.shape, np.bool_))
        shapes = {column.shape for column in (self.meter_ns, self.current_a, self.voltage_v, self.clipped)}
        if len(shapes) > 1 or self.meter_ns.ndim != 1:
            raise ValueError("trace columns differ in length")
        if self.meter_ns.dtype != np.int64:
            raise ValueError(f"meter_ns is {self.meter_ns.dtype}, not int64")
        if self.meter_ns.size and (int(self.meter_ns[-1]) - int(self.meter_ns[0])) * 1e-9 > SPAN_MAX_S:
            raise ValueError(f"trace spans more than {SPAN_MAX_S:.0e} s")
        if self.meter_ns.size > 1 and not bool(np.all(self.meter_ns[1:] > self.meter_ns[:-1])):
            first = int(np.argmin(self.meter_ns[1:] > self.meter_ns[:-1]))
            raise ValueError(f"trace goes back in time after sample {first} ({self.meter_ns[first]} ns)")
        ordered = tuple(sorted(self.gaps, key=lambda gap: gap.start_meter_ns))
        object.__setattr__(self, "gaps", ordered)

    @classmethod
    def of(
        cls,
        meter_ns: npt.ArrayLike,
        current_a: npt.ArrayLike,
        voltage_v: npt.ArrayLike,
        gaps: Iterable[Gap] = (),
        clipped: npt.ArrayLike = (),
    ) -> PowerTrace:
        """A trace from anything array-like."""
        return cls(
            np.ascontiguousarray(meter_ns, dtype=np.int64),
            np.ascontiguousarray(current_a, dtype=np.float64),
            np.ascontiguousarray(voltage_v, dtype=np.float64),
            tuple(gaps),
            np.ascontiguousarray(clipped, dtype=np.bool_),
        )

    def __len__(self) -> int:
        return int(self.meter_ns.size)

    @property
    def good(self) -> npt.NDArray[np.bool_]:
        """True where the conversion arrived, shape (n,)."""
        return ~(np.isnan(self.current_a) | np.isnan(self.voltage_v))

    @property
    def power_w(self) -> Float64Array:
        """Current times voltage [W], shape (n,); NaN where lost."""
        return self.current_a * self.voltage_v

    @cached_property
    def supply(self) -> SupplyLine | None:
        """The supply's load line; None if each current has its own voltage or there are too few readings."""
        return fit_supply_line(self.bus, self.meter_ns, self.current_a) if self.bus else None

    def on_supply_line(self) -> PowerTrace:
        """The trace with the voltages of its load line instead of held ones; unchanged if it has no load line."""
        if self.supply is None:
            return self
        # the same readings and currents give the same line
        return self._with(self.supply, voltage_v=self.supply.voltage_v(self.meter_ns, self.current_a))

    def _with(self, supply: SupplyLine | None, **columns: Any) -> PowerTrace:
        """The trace with other columns at the same times, and with their load line, which is not fitted again."""
        made = replace(self, **columns)
        made.__dict__.update(period_ns=self.period_ns, supply=supply)
        return made

    def corrected(
        self,
        current_gain: float,
        current_offset_a: float,
        voltage_gain: float,
        voltage_offset_v: float,
        *,
        overwrite: bool = False,
    ) -> PowerTrace:
        """The trace with every current and voltage replaced by offset + gain * value, and its load line accordingly.

        `overwrite`: reuses the columns of this trace, which must not be used afterwards.
        """
        line, gaps, bus = self.supply, list(self.gaps), self.bus  # the line of the columns as they are
        for number, gap in enumerate(gaps):
            if gap.charge_c is not None:
                charge_c = current_gain * gap.charge_c + current_offset_a * gap.duration_ns * 1e-9
                gaps[number] = replace(gap, charge_c=charge_c)
        changed = line and replace(
            line,
            resistance_ohm=line.resistance_ohm * voltage_gain / current_gain,
            resistance_u_ohm=line.resistance_u_ohm * voltage_gain / current_gain,
            reading_v=voltage_offset_v + voltage_gain * line.reading_v,
            current_a=current_offset_a + current_gain * line.current_a,
        )
        return self._with(
            changed,
            current_a=_line(self.current_a, current_gain, current_offset_a, overwrite=overwrite),
            voltage_v=_line(self.voltage_v, voltage_gain, voltage_offset_v, overwrite=overwrite),
            gaps=tuple(gaps),
            bus=bus and replace(bus, voltage_v=voltage_offset_v + voltage_gain * bus.voltage_v),
        )

    def scaled(self, factor_at: Callable[[Int64Array], Float64Array], *, overwrite: bool = False) -> PowerTrace:
        """The trace with every current multiplied by the factor at its time [meter_ns], and its load line accordingly.

        `overwrite`: reuses the columns of this trace, which must not be used afterwards.
        """
        line = self.supply
        centres_ns = np.array([gap.start_meter_ns + gap.duration_ns // 2 for gap in self.gaps], np.int64)
        gaps = tuple(
            gap if gap.charge_c is None else replace(gap, charge_c=factor * gap.charge_c)
            for gap, factor in zip(self.gaps, factor_at(centres_ns).tolist(), strict=True)
        )
        current_a = self.current_a if overwrite else self.current_a.copy()
        for low in range(0, current_a.size, _TOGETHER):
            current_a[low : low + _TOGETHER] *= factor_at(self.meter_ns[low : low + _TOGETHER])
        return self._with(line and line.scaled(factor_at(line.meter_ns)), current_a=current_a, gaps=gaps)

    def behind(self, wire_ohm: float, *, overwrite: bool = False) -> PowerTrace:
        """The trace behind a further wire of this resistance: each voltage minus the wire's voltage drop.

        `overwrite`: reuses the columns of this trace, which must not be used afterwards.
        """
        line = self.supply
        voltage_v = self.voltage_v if overwrite else self.voltage_v.copy()
        for low in range(0, voltage_v.size, _TOGETHER):
            voltage_v[low : low + _TOGETHER] -= wire_ohm * self.current_a[low : low + _TOGETHER]
        changed = line and replace(
            line,
            resistance_ohm=line.resistance_ohm + wire_ohm,
            reading_v=line.reading_v - wire_ohm * line.current_a,
        )
        return self._with(changed, voltage_v=voltage_v)

    @property
    def lost_samples(self) -> int:
        """Number of conversions known to be lost."""
        return sum(gap.lost_samples for gap in self.gaps)

    @property
    def clipped_samples(self) -> int:
        """Number of samples at the end of the meter's range, including lost ones known to have been there."""
        return int(np.count_nonzero(self.clipped)) + sum(gap.clipped_samples for gap in self.gaps)

    @cached_property
    def period_ns(self) -> int:
        """Median distance of two samples [ns]; 0 for fewer than two."""
        count = self.meter_ns.size - 1
        if count < 1:
            return 0
        # a few samples usually give the median of all: then at most half lie on either side
        some = np.arange(0, count, max(count // _GUESSED, 1))
        guess_ns = int(np.median(self.meter_ns[some + 1] - self.meter_ns[some]))
        shorter = longer = 0
        for at in range(0, count, _TOGETHER):
            distances_ns = np.diff(self.meter_ns[at : at + _TOGETHER + 1])
            shorter += int(np.count_nonzero(distances_ns < guess_ns))
            longer += int(np.count_nonzero(distances_ns > guess_ns))
        if max(shorter, longer) <= (count - 1) // 2:
            return guess_ns
        return int(np.median(np.diff(self.meter_ns)))


def _line(values: Float64Array, gain: float, offset: float, *, overwrite: bool) -> Float64Array:
    """offset + gain * values, written into `values` or into a new array."""
    made = np.multiply(values, gain, out=values if overwrite else None)
    made += offset
    return np.asarray(made, np.float64)
