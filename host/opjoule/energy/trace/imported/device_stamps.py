"""Time from a device's stamps that repeat, guided by a coarse column of time.

A PowerSensor3's dump has both. Its column `time` is the host's at the arrival of a row, which comes in bursts, with six
significant digits: from 10 s on, rows share a value (nlesc-recruit/PowerSensor3, `PowerSensor.cc`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from opjoule.energy.trace.power_trace import Float64Array

TURN_US: Final = 1024
"""Microseconds after which a PowerSensor3's stamp repeats."""
WATCH_S: Final = 1.0
LATE_US: Final = 3000.0
"""Growth of the minimum delay of a row, from one second to the next, above which whole turns are missing."""


def stamped_s(time_s: Float64Array, stamps_us: Float64Array) -> Float64Array | None:
    """Time of each row [s] by the device's clock, from the first row on, shape (n,).

    Args:
        time_s: the host's time at the arrival of each row [s], which does not fall.
        stamps_us: the device's microseconds, modulo TURN_US.
    Returns: None if the stamps do not give a time: the rows lie too far apart, or the stamps do not change.
    """
    rows = time_s.size
    if rows < 2 or not float(time_s[-1] - time_s[0]) * 1e6 < (rows - 1) * TURN_US / 2:
        return None
    steps_us = np.diff(stamps_us, prepend=stamps_us[:1]) % TURN_US
    if not bool(np.all(steps_us[1:] > 0)):
        return None
    delays_us = time_s * 1e6 - np.cumsum(steps_us)
    steps_us += TURN_US * _missing_turns(time_s, delays_us)
    return np.asarray(np.cumsum(steps_us) * 1e-6, np.float64)


def _missing_turns(time_s: Float64Array, delays_us: Float64Array) -> Float64Array:
    """Number of whole turns that are missing before each row, shape (n,).

    A row arrives late when the host is busy, but never early. If the minimum delay grows from one second to the next,
    turns are missing; they are put where the host waited longest.
    """
    rows = time_s.size
    missing = np.zeros(rows)
    length = max(round(WATCH_S * (rows - 1) / float(time_s[-1] - time_s[0])), 1) if time_s[-1] > time_s[0] else rows
    starts = np.arange(0, max(rows - length, 0) + 1, length)  # the last second is a whole one, or longer
    least_us = np.minimum.reduceat(delays_us, starts)
    for second in np.flatnonzero(np.diff(least_us) > LATE_US):
        first = int(starts[second])
        waits_s = np.diff(time_s[first : first + length + 1])
        missing[first + 1 + int(np.argmax(waits_s))] = round(float(least_us[second + 1] - least_us[second]) / TURN_US)
    return missing
