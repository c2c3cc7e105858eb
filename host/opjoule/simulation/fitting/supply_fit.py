"""The supply as the board sees it: open voltage and resistance, from voltage against current."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from opjoule.energy.error_bounds import SQRT3, VOLTAGE
from opjoule.simulation.fitting.estimate import LEAST_OHM, Estimate, assumed, found
from opjoule.simulation.fitting.recorded import Recorded
from opjoule.simulation.power_model import Supply
from opjoule.trace.power_trace import PowerTrace
from opjoule.trace.supply_line import BusReadings, SupplyLine, fit_supply_line

HELD: Final = ("monsoon",)
"""Meters that are the supply, and hold its voltage."""
READINGS: Final = 20_000
_TELL: Final = "a record with a meter that measures voltage and current of an ordinary supply"


def supply_estimates(records: Sequence[Recorded], prior: Supply) -> list[Estimate]:
    """Open voltage [V] and resistance [ohm], means over the records; a record's own supply is told, not a kind's."""
    lines = [each for each in (_line(one) for one in records) if each]
    keys = "supply.open_voltage_v", "supply.resistance_ohm"
    if not lines:
        held = any(one.meter in HELD for one in records)
        why = "the meter is the supply, and holds its voltage" if held else "the voltage was not measured"
        return [
            assumed(keys[0], prior.open_voltage_v, "V", why, _TELL),
            assumed(keys[1], prior.resistance_ohm, "ohm", why, _TELL),
        ]
    values, standard_u = np.array([each[:2] for each in lines]), np.array([each[2:] for each in lines])
    mean = values.mean(axis=0)
    between = values.std(axis=0, ddof=1) if len(lines) > 1 else np.zeros(2)
    u = np.hypot(standard_u.max(axis=0), between)
    origin = "voltage against current"
    return [
        found(keys[0], mean[0], u[0], "V", origin, prior.open_voltage_v, least=0.0, tell=_TELL),
        found(keys[1], mean[1], u[1], "ohm", origin, prior.resistance_ohm, least=LEAST_OHM, tell=_TELL),
    ]


def _line(one: Recorded) -> tuple[float, float, float, float] | None:
    """(open voltage [V], resistance [ohm], their standard uncertainties); None where the voltage says nothing."""
    constant = one.trace.bus is None and np.ptp(one.trace.voltage_v[one.trace.good]) == 0
    if one.meter in HELD or constant:
        return None
    line = one.trace.supply or _line_of_samples(one.trace)
    if line is None:
        return None
    current_a = float(line.current_a.mean())
    source_v = float(line.source_v.mean())
    bounds = one.sensor.gain_errors_max if one.sensor else {}
    current_gain = math.hypot(*(each for name, each in bounds.items() if name != VOLTAGE)) / SQRT3
    gain = math.hypot(current_gain, bounds.get(VOLTAGE, 0.0) / SQRT3)
    # few levels of current stand on few codes, whose errors do not average out
    codes = max(np.unique(np.round(line.reading_v, 4)).size, 2)
    steps_ohm = _step_v(one) / math.sqrt(12.0 * codes) / max(float(line.current_a.std()), 1e-6)
    ohm, ohm_u = (
        round(line.resistance_ohm, 9),
        math.hypot(line.resistance_u_ohm, gain * line.resistance_ohm, steps_ohm),
    )
    at_board_u_v = one.sensor.voltage_u_v(source_v) if one.sensor else 0.0
    drift_v = float(np.abs(np.diff([part.mean() for part in np.array_split(line.source_v, 4)])).max())
    volt_u = math.hypot(at_board_u_v, ohm_u * current_a, drift_v / 2)
    return source_v, ohm, volt_u, ohm_u


def _step_v(one: Recorded) -> float:
    if one.trace.bus is not None and one.trace.bus.step_v:
        return one.trace.bus.step_v
    return one.sensor.voltage_step_v if one.sensor else 0.0


def _line_of_samples(trace: PowerTrace) -> SupplyLine | None:
    """The load line of a meter that measures voltage with every current."""
    good = np.flatnonzero(trace.good)
    some = good[:: max(good.size // READINGS, 1)][1:-1]
    return fit_supply_line(
        BusReadings(trace.meter_ns[some], trace.voltage_v[some]), trace.meter_ns, trace.current_a
    )
