"""Recordings made from numbers, for tests of the commissioning's verdicts."""

from __future__ import annotations

import numpy as np
from opjoule.bench.commissioning.desk import DeskRecording
from opjoule.energy.error_bounds import Shunt
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.chips import INA219

BOUNDS = INA219.error_bounds(3, 1.0, Shunt(0.1, 0.01, "", per_k=0.0, kelvin=True), genuine=True)
PERIOD_S = 0.0011
NOISE_A = 2e-4


def trace(seconds, current_a, voltage_v=5.1, noise_a=NOISE_A, seed=1):
    """A trace whose current and voltage are numbers, or functions of the time [s], shape (n,) to (n,)."""
    time_s = np.arange(round(seconds / PERIOD_S)) * PERIOD_S
    noise = np.random.default_rng(seed).normal(0, noise_a, time_s.size)
    values = [course(time_s) if callable(course) else np.full(time_s.size, course) for course in (current_a, voltage_v)]
    return PowerTrace.of(np.rint(time_s * 1e9).astype(np.int64), values[0] + noise, values[1])


def recorded(*args, bounds=BOUNDS, **more):
    """A recording of such a trace."""
    fields = {name: more.pop(name) for name in list(more) if name in DeskRecording.__dataclass_fields__}
    return DeskRecording(trace(*args, **more), bounds, **fields)
