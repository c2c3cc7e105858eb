"""The least voltage that a board was given in a trace."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.trace.power_trace import Float64Array, PowerTrace


@dataclass(frozen=True)
class LeastVoltage:
    """The lowest voltage of a trace."""

    voltage_v: float
    standard_u_v: float
    """Standard uncertainty [V]: gain, steps, and the load line where it is not a reading itself."""
    meter_ns: int


def least_voltage(trace: PowerTrace, sensor: ErrorBounds) -> LeastVoltage | None:
    """The least voltage of all samples and readings; None if there is none.

    Where the voltage is read only now and then, the load line tells it between readings: that counts where it lies
    below every reading by more than its own doubt (k = 2), which is R's uncertainty times the current's distance from
    that of the readings around. What is shorter than a conversion is not seen.
    """
    good = trace.good
    if not good.any():
        return None
    times_ns, volts_v = trace.meter_ns[good], trace.voltage_v[good]
    line_u_v = _line_u_v(trace)[good]
    if trace.bus is None:
        at = int(np.argmin(volts_v))
        return _least(float(volts_v[at]), 0.0, int(times_ns[at]), sensor)
    read = int(np.argmin(trace.bus.voltage_v))
    lowest_v, lowest_ns = float(trace.bus.voltage_v[read]), int(trace.bus.meter_ns[read])
    at = int(np.argmin(volts_v + 2 * line_u_v))
    if trace.supply is not None and volts_v[at] + 2 * line_u_v[at] < lowest_v:
        return _least(float(volts_v[at]), float(line_u_v[at]), int(times_ns[at]), sensor)
    return _least(lowest_v, 0.0, lowest_ns, sensor)


def _line_u_v(trace: PowerTrace) -> Float64Array:
    """Standard uncertainty of each sample's voltage by the load line [V], shape (n,); NaN with a NaN."""
    if trace.supply is None:
        return np.zeros(trace.meter_ns.shape)
    apart_a = np.abs(trace.current_a - trace.supply.reading_current_a(trace.meter_ns))
    return np.asarray(trace.supply.resistance_u_ohm * apart_a, np.float64)


def _least(voltage_v: float, line_u_v: float, meter_ns: int, sensor: ErrorBounds) -> LeastVoltage:
    step_u_v = sensor.voltage_step_v / math.sqrt(12.0)
    return LeastVoltage(voltage_v, math.hypot(sensor.voltage_u_v(voltage_v), step_u_v, line_u_v), meter_ns)
