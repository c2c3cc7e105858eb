"""Steps without a current: the zero of the sensor, and whether anything feeds the board from elsewhere."""

from __future__ import annotations

from typing import Final

import numpy as np

from opjoule.commissioning.desk import OpenDesk, Setup
from opjoule.commissioning.recorded import DeskRecording
from opjoule.commissioning.verdict import CheckedFigure, Defects, Picture, Verdict
from opjoule.trace.power_trace import Float64Array

DRIFT_MAX_A: Final = 0.3e-3
"""In 60 s: three steps of 0.1 mA of an INA219 with 0.1 ohm."""
DRIFT_S: Final = 60.0
BLOCKS: Final = 10
FED_MAX_V: Final = 0.5
"""With the fuse out; the least that an unpowered board is sure not to run on, and above what a floating input shows."""
LAST_S: Final = 1.0
ZERO_A: Final = "zero_a"


def zero(desk: OpenDesk) -> Verdict:
    """Records the sensor without a load."""
    desk.set_up(Setup.UNPLUGGED)
    return judge_zero(desk.take("zero", desk.pace.zero_s))


def judge_zero(recorded: DeskRecording) -> Verdict:
    """Whether the reading without a current is within the data sheet's offset, and stays there."""
    bounds = recorded.bounds
    good = recorded.trace.good
    time_s, current_a = recorded.trace.meter_ns[good] * 1e-9, recorded.trace.current_a[good]
    mean_a = float(current_a.mean())
    drift_a, drift_u_a, picture = _drift(time_s - time_s[0], current_a)
    offset_max_a = bounds.current_offset_max_a + bounds.current_step_a / 2
    figures = {
        ZERO_A: CheckedFigure(mean_a, "A", f"at most {1e3 * offset_max_a:.3g} mA (data sheet, half a step)"),
        "drift_a": CheckedFigure(drift_a, "A", f"at most {1e3 * DRIFT_MAX_A:g} mA in 60 s, and its noise"),
        "drift_u_a": CheckedFigure(drift_u_a, "A"),
    }
    faults = Defects()
    if abs(mean_a) > offset_max_a:
        faults.add(
            f"the sensor reads {1e3 * mean_a:+.2f} mA without a load, and its data sheet allows "
            f"{1e3 * offset_max_a:.3g} mA",
            "see that nothing is connected behind VIN\N{MINUS SIGN} (a LED, a bleeder, the board); then the chip "
            "or its solder joints are at fault: take another breakout",
        )
    if abs(drift_a) > DRIFT_MAX_A + 2 * drift_u_a:
        faults.add(
            f"the zero moves by {1e3 * drift_a:+.2f} mA in 60 s",
            "keep draughts, hands and hot parts off the sensor, press VIN+ and VIN\N{MINUS SIGN} into fresh solder "
            "(a cold joint is a thermocouple), and wait ten minutes after switching on",
        )
    words = f"reads {1e3 * mean_a:+.3f} mA without a load, moves by {1e3 * drift_a:+.3f} mA in 60 s"
    return Verdict.of(words, faults, figures, picture)


def _drift(time_s: Float64Array, current_a: Float64Array) -> tuple[float, float, Picture]:
    """Change in 60 s and its standard uncertainty [A], by a line through means of tenths of the recording."""
    blocks = np.array_split(np.arange(time_s.size), BLOCKS)
    at_s = np.array([time_s[block].mean() for block in blocks])
    means_a = np.array([current_a[block].mean() for block in blocks])
    (slope, level), residual, *_ = np.polyfit(at_s, means_a, 1, full=True)
    scatter_a2 = float(residual[0]) / (BLOCKS - 2) if residual.size else 0.0
    slope_u = (scatter_a2 / float(((at_s - at_s.mean()) ** 2).sum())) ** 0.5
    picture = Picture(
        at_s.tolist(), (1e3 * means_a).tolist(), "s", "mA", 1e3 * float(slope), 1e3 * float(level)
    )
    return float(slope) * DRIFT_S, slope_u * DRIFT_S, picture


def back_feed(desk: OpenDesk) -> Verdict:
    """Records the supply's voltage with the fuse out."""
    desk.set_up(Setup.FUSE_PULLED)
    return judge_back_feed(desk.take("fuse", desk.pace.fuse_s))


def judge_back_feed(recorded: DeskRecording) -> Verdict:
    """Whether the board's supply falls to nothing once its fuse is out."""
    if not recorded.bounds.voltage_step_v:
        return Verdict.skipped("the meter does not measure the voltage")
    left_v = last_voltage_v(recorded)
    figures = {"left_v": CheckedFigure(left_v, "V", f"below {FED_MAX_V:g} V within 5 s")}
    faults = Defects()
    if left_v >= FED_MAX_V:
        faults.add(
            f"with the fuse out {left_v:.2f} V stand at the board: something else feeds it, past the sensor",
            "unplug one after the other and look again: HDMI, a powered USB hub, the 5 V of a debug adapter, a "
            "second supply, the sync line of an unbuffered controller (docs/how-to/wire-the-rig.md, What must not "
            "feed the board)",
        )
    return Verdict.of(f"{left_v:.2f} V left with the fuse out", faults, figures)


def last_voltage_v(recorded: DeskRecording) -> float:
    """Mean voltage of the recording's last second, of the readings themselves [V]."""
    trace = recorded.trace
    good = trace.good
    stamps_ns, volts_v = (
        (trace.bus.meter_ns, trace.bus.voltage_v)
        if trace.bus
        else (trace.meter_ns[good], trace.voltage_v[good])
    )
    late = stamps_ns > int(trace.meter_ns[-1]) - round(LAST_S * 1e9)
    return float(np.abs(volts_v[late] if late.any() else volts_v[-1:]).mean())
