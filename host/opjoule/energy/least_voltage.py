"""The least supply voltage of the board in a trace."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.power_trace import Float64Array, Int64Array, PowerTrace
from opjoule.energy.trace.supply_line import SupplyLine

AROUND: Final = 8
"""Number of readings before and after whose median is the source's voltage: about a second."""


@dataclass(frozen=True)
class LeastVoltage:
    """The lowest voltage of a trace."""

    voltage_v: float
    standard_u_v: float
    """Standard uncertainty [V]: gain, steps, and the load line unless the least voltage is a reading."""
    meter_ns: int
    line_u_v: float = 0.0
    """The load line's contribution [V]; 0 for a reading."""

    def is_under(self, limit_v: float) -> bool:
        """Whether it is under a limit by more than the load line's expanded uncertainty (k = 2)."""
        return self.voltage_v + 2 * self.line_u_v < limit_v


def least_voltage(trace: PowerTrace, sensor: ErrorBounds) -> LeastVoltage | None:
    """The least voltage of all samples and readings; None if there is none.

    If the voltage is read only now and then, the load line gives it between readings. Such a value counts if it is
    below every reading by more than its own uncertainty (k = 2). That uncertainty combines R's uncertainty times the
    difference between the current and that of the readings around, and the scatter of V0 from reading to reading. A
    current that changed during a reading gives a wrong V0, so the median of the readings around is used. Dips shorter
    than a conversion are not seen.
    """
    good = trace.good
    if not good.any():
        return None
    times_ns, volts_v = trace.meter_ns[good], trace.voltage_v[good]
    if trace.bus is None:
        at = int(np.argmin(volts_v))
        return _least(float(volts_v[at]), 0.0, int(times_ns[at]), sensor)
    read = int(np.argmin(trace.bus.voltage_v))
    lowest_v, lowest_ns = float(trace.bus.voltage_v[read]), int(trace.bus.meter_ns[read])
    if trace.supply is not None:
        volts_v, line_u_v = _on_line(trace.supply, times_ns, trace.current_a[good])
        at = int(np.argmin(volts_v + 2 * line_u_v))
        if volts_v[at] + 2 * line_u_v[at] < lowest_v:
            return _least(float(volts_v[at]), float(line_u_v[at]), int(times_ns[at]), sensor)
    return _least(lowest_v, 0.0, lowest_ns, sensor)


def _on_line(supply: SupplyLine, times_ns: Int64Array, current_a: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Voltage of each sample from the load line, and its standard uncertainty [V], shape (n,) each."""
    places = np.clip(np.arange(-AROUND, AROUND + 1) + np.arange(supply.meter_ns.size)[:, None], 0, None)
    around_v = supply.source_v[np.minimum(places, supply.meter_ns.size - 1)]
    source_v = np.median(around_v, axis=1)
    scatter_v = around_v.std(axis=1)
    knots = np.clip(np.searchsorted(supply.meter_ns, times_ns), 0, supply.meter_ns.size - 1)
    apart_a = np.abs(current_a - supply.reading_current_a(times_ns))
    doubt_v = np.hypot(supply.resistance_u_ohm * apart_a, scatter_v[knots])
    return source_v[knots] - supply.resistance_ohm * current_a, doubt_v


def _least(voltage_v: float, line_u_v: float, meter_ns: int, sensor: ErrorBounds) -> LeastVoltage:
    step_u_v = sensor.voltage_step_v / math.sqrt(12.0)
    whole_u_v = math.hypot(sensor.voltage_u_v(voltage_v), step_u_v, line_u_v)
    return LeastVoltage(voltage_v, whole_u_v, meter_ns, line_u_v)
