"""Steps without the board as the load: the zero, back-feeding, a known resistor, and additivity of two resistors."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.base.notices import Notice, NoticeKind
from opjoule.bench.commissioning.desk import (
    CheckedFigure,
    Defects,
    DeskRecording,
    OpenDesk,
    Picture,
    Setup,
    Verdict,
    known_resistor,
)
from opjoule.energy.calibration.means import MeanReading, mean_reading
from opjoule.energy.error_bounds import SWAPPED, ErrorBounds
from opjoule.energy.sensor_calibration import PARAMETERS
from opjoule.energy.trace.power_trace import Float64Array

DRIFT_MAX_A: Final = 0.3e-3
"""Largest drift in 60 s: three steps of 0.1 mA of an INA219 with 0.1 ohm."""
DRIFT_S: Final = 60.0
BLOCKS: Final = 10
FED_MAX_V: Final = 0.5
"""Limit with the fuse out: no board runs on less, and a floating input shows less."""
LAST_S: Final = 1.0
ZERO_A: Final = "zero_a"
WRONG_SHUNT: Final = 0.1
"""Relative error of the current that no tolerance explains."""
ADDITIVITY_MAX: Final = 0.002
LEAD_S: Final = 1.0
"""Beginning of a recording that is left out, since the load was connected at about that time."""
USUAL_OHM: Final = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0)


def zero(desk: OpenDesk) -> Verdict:
    """Records the sensor without a load."""
    desk.set_up(Setup.UNPLUGGED)
    return judge_zero(desk.take("zero", desk.pace.zero_s))


def judge_zero(recorded: DeskRecording) -> Verdict:
    """Judges whether the reading without a current is within the data sheet's offset and does not drift."""
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
            "see that nothing is connected after VIN\N{MINUS SIGN} (a LED, a bleeder, the board); if so, the chip "
            "or its solder joints are at fault: use another breakout",
        )
    if abs(drift_a) > DRIFT_MAX_A + 2 * drift_u_a:
        faults.add(
            f"the zero moves by {1e3 * drift_a:+.2f} mA in 60 s",
            "keep draughts, hands and hot parts away from the sensor, solder VIN+ and VIN\N{MINUS SIGN} again "
            "(a cold joint is a thermocouple), and wait ten minutes after switching on",
        )
    words = f"reads {1e3 * mean_a:+.3f} mA without a load, moves by {1e3 * drift_a:+.3f} mA in 60 s"
    return Verdict.of(words, faults, figures, picture)


def _drift(time_s: Float64Array, current_a: Float64Array) -> tuple[float, float, Picture]:
    """Change in 60 s and its standard uncertainty [A], from a line through the means of tenths of the recording."""
    blocks = np.array_split(np.arange(time_s.size), BLOCKS)
    at_s = np.array([time_s[block].mean() for block in blocks])
    means_a = np.array([current_a[block].mean() for block in blocks])
    (slope, level), residual, *_ = np.polyfit(at_s, means_a, 1, full=True)
    scatter_a2 = float(residual[0]) / (BLOCKS - 2) if residual.size else 0.0
    slope_u = (scatter_a2 / float(((at_s - at_s.mean()) ** 2).sum())) ** 0.5
    picture = Picture(at_s.tolist(), (1e3 * means_a).tolist(), "s", "mA", 1e3 * float(slope), 1e3 * float(level))
    return float(slope) * DRIFT_S, slope_u * DRIFT_S, picture


def back_feed(desk: OpenDesk) -> Verdict:
    """Records the supply's voltage with the fuse out."""
    desk.set_up(Setup.FUSE_PULLED)
    return judge_back_feed(desk.take("fuse", desk.pace.fuse_s))


def judge_back_feed(recorded: DeskRecording) -> Verdict:
    """Judges whether the board's voltage falls to nothing once the supply's fuse is out."""
    if not recorded.bounds.voltage_step_v:
        return Verdict.skipped("the meter does not measure the voltage")
    left_v = last_voltage_v(recorded)
    figures = {"left_v": CheckedFigure(left_v, "V", f"below {FED_MAX_V:g} V within 5 s")}
    faults = Defects()
    if left_v >= FED_MAX_V:
        faults.add(
            f"with the fuse out the board still has {left_v:.2f} V: something else feeds it, past the sensor",
            "unplug one thing after the other and look again: HDMI, a powered USB hub, the 5 V of a debug adapter, a "
            "second supply, the sync line of an unbuffered controller (docs/how-to/wire-the-rig.md, What must not "
            "feed the board)",
        )
    return Verdict.of(f"{left_v:.2f} V left with the fuse out", faults, figures)


def last_voltage_v(recorded: DeskRecording) -> float:
    """Mean of the voltage readings in the recording's last second [V]."""
    trace = recorded.trace
    good = trace.good
    stamps_ns, volts_v = (
        (trace.bus.meter_ns, trace.bus.voltage_v) if trace.bus else (trace.meter_ns[good], trace.voltage_v[good])
    )
    late = stamps_ns > int(trace.meter_ns[-1]) - round(LAST_S * 1e9)
    return float(np.abs(volts_v[late] if late.any() else volts_v[-1:]).mean())


def steady_mean(recorded: DeskRecording, lead_s: float = LEAD_S) -> MeanReading:
    """Means at a steady load, without the first `lead_s`. Raises: CalibrationFault: not steady, or out of range."""
    cells = recorded.cells
    return mean_reading(cells, cells.start_ns + round(lead_s * 1e9), cells.end_ns, recorded.bounds)


def resistor(desk: OpenDesk) -> Verdict:
    """Records the known resistor."""
    if not desk.parts.resistor:
        return Verdict.skipped("there is no known resistor")
    desk.set_up(Setup.LOAD_A)
    recorded = desk.take("resistor", desk.pace.load_s + LEAD_S)
    ohm, bound = known_resistor(desk.parts.resistor)
    return judge_resistor(steady_mean(recorded), ohm, bound, recorded.bounds, desk.zero_a)


def judge_resistor(
    read: MeanReading, ohm: float, ohm_bound: float, bounds: ErrorBounds, zero_a: float | None = None
) -> Verdict:
    """Judges whether current and voltage fit a known resistor.

    Args:
        ohm_bound: relative error bound of the resistance.
        zero_a: reading without a load; None: unknown.
    """
    if not bounds.voltage_step_v:
        return Verdict.skipped("the meter does not measure the voltage")
    expected_a = read.voltage_v / ohm
    current_a = read.current_a - (zero_a or 0.0)
    allowed = ratio_bound(read, expected_a, bounds, zero_known=zero_a is not None) + ohm_bound
    if read.voltage_v < 1.0:
        return Verdict.failed(
            f"only {read.voltage_v:.2f} V at the resistor",
            "see that the supply is on, the fuse is back, and the resistor is connected to VIN\N{MINUS SIGN} and GND",
        )
    ratio = current_a / expected_a
    figures = {
        "ratio": CheckedFigure(ratio, "", f"1 within {100 * allowed:.2g} % (sum of the bounds)"),
        "current_a": CheckedFigure(current_a, "A"),
        "voltage_v": CheckedFigure(read.voltage_v, "V"),
        "expected_a": CheckedFigure(expected_a, "A"),
    }
    words = f"{current_a:.4f} A through {ohm:g} ohm, {expected_a:.4f} A by the voltage ({100 * (ratio - 1):+.2f} %)"
    if abs(ratio - 1) <= allowed:
        return Verdict.of(words, [], figures)
    return Verdict.of(words, [_off(ratio, allowed, bounds)], figures)


def ratio_bound(read: MeanReading, current_a: float, bounds: ErrorBounds, *, zero_known: bool = False) -> float:
    """Relative bound of current divided by voltage: sum of all bounds as delivered, or k = 2 of a calibration.

    The bounds are added, not combined as a root of squares: a sound rig must pass, and all bounds of a data sheet may
    be reached at once.
    """
    steps = bounds.current_step_a / 2 / current_a + bounds.voltage_step_v / 2 / read.voltage_v
    noise = 2 * math.hypot(read.current_u_a / current_a, read.voltage_u_v / read.voltage_v)
    if bounds.calibration:
        at = np.zeros(len(PARAMETERS))
        at[:4] = 1.0, -1.0, 1.0 / current_a, -1.0 / read.voltage_v
        parts = [u for _, u in bounds.calibration.contributions(at).values()]
        known = 2 * math.hypot(bounds.calibration.gain_drift_u, *parts)
        return known + noise + (0.0 if bounds.calibration.voltage else bounds.voltage_gain_error_max) + steps
    offset = 0.0 if zero_known else bounds.current_offset_max_a / current_a
    return sum(bounds.gain_errors_max.values()) + offset + steps + noise


def _off(ratio: float, allowed: float, bounds: ErrorBounds) -> Notice:
    if ratio < -0.1:
        return Notice(NoticeKind.MEND, "the current flows backwards", SWAPPED)
    if ratio < 0.1:
        return Notice(
            NoticeKind.MEND,
            "the current does not flow through the sensor",
            "connect the resistor to VIN\N{MINUS SIGN}, not to the supply; see that VIN+ has the supply's +5 V",
        )
    if abs(ratio - 1) > WRONG_SHUNT and bounds.shunt:
        true_ohm = bounds.shunt.ohm * ratio
        usual = min(USUAL_OHM, key=lambda ohm: abs(math.log(ohm / true_ohm)))
        fits = f", about shunt={usual:g}" if abs(usual / true_ohm - 1) < WRONG_SHUNT / 2 else ""
        return Notice(
            NoticeKind.MEND,
            f"the current is {100 * (ratio - 1):+.0f} % off, more than any tolerance: shunt={bounds.shunt.ohm:g} "
            "is wrong",
            f"the shunt behaves as one of {true_ohm:.3g} ohm{fits}: read its marking (R100 is 0.1, R020 is 0.02) and "
            "correct shunt= in rig.toml; if it is right, look for a second resistor in parallel",
        )
    return Notice(
        NoticeKind.MEND,
        f"the current is {100 * (ratio - 1):+.2f} % off, and {100 * allowed:.2g} % are allowed",
        "solder the shunt, VIN+ and VIN\N{MINUS SIGN} again, measure the resistor with four wires, and calibrate the "
        "sensor (docs/how-to/calibrate.md)",
    )


@dataclass(frozen=True)
class Loads:
    """Readings of load A, of load B and of both in parallel."""

    a: MeanReading
    b: MeanReading
    both: MeanReading

    def residual(self, zero_a: float) -> float:
        """Current of both minus the currents of A and B, as a share of the former; all at the voltage of both."""
        parts_a = [(load.current_a - zero_a) * self.both.voltage_v / load.voltage_v for load in (self.a, self.b)]
        both_a = self.both.current_a - zero_a
        return (both_a - sum(parts_a)) / both_a

    def residual_u(self) -> float:
        """Standard uncertainty of the residual, from noise and quantisation steps."""
        return math.hypot(
            *(load.current_u_a / self.both.current_a for load in (self.a, self.b, self.both)),
            *(load.voltage_u_v / load.voltage_v * load.current_a / self.both.current_a for load in (self.a, self.b)),
            self.both.voltage_u_v / self.both.voltage_v,
        )


def additivity(desk: OpenDesk) -> Verdict:
    """Records A, B and both, then the same again after both have been on for a while."""
    pace = desk.pace
    if not desk.parts.resistor:
        return Verdict.skipped("there is no known resistor, and no second one to go with it")

    def take(setup: Setup, name: str, lead_s: float = LEAD_S) -> DeskRecording:
        desk.set_up(setup)
        return desk.take(name, pace.load_s + lead_s)

    a, b, both = (
        steady_mean(take(setup, name))
        for setup, name in ((Setup.LOAD_A, "a"), (Setup.LOAD_B, "b"), (Setup.BOTH, "both"))
    )
    cold = Loads(a, b, both)
    warm = take(Setup.BOTH_HOT, "both-hot", pace.hold_s)
    a, b = (
        steady_mean(take(setup, name, pace.cool_s), pace.cool_s)
        for setup, name in ((Setup.A_HOT, "a-hot"), (Setup.B_HOT, "b-hot"))
    )
    hot = Loads(a, b, steady_mean(warm, pace.hold_s))
    return judge_additivity(cold, hot, warm.bounds, desk.zero_a)


def judge_additivity(cold: Loads, hot: Loads, bounds: ErrorBounds, zero_a: float | None) -> Verdict:
    """Judges whether currents add up, before and after the shunt has warmed up.

    For any two resistors and any gain of the sensor, both in parallel draw the sum. A residual shows that the sensor is
    not linear, or that the shunt heats itself.

    Args:
        zero_a: reading without a load; None: unknown, and the offset's bound widens the limit.
    """
    if not bounds.voltage_step_v:
        return Verdict.skipped("the meter does not measure the voltage")
    unknown = 0.0 if zero_a is not None else bounds.current_offset_max_a / abs(cold.both.current_a)
    at_cold, at_hot = cold.residual(zero_a or 0.0), hot.residual(zero_a or 0.0)
    limit = ADDITIVITY_MAX + unknown
    words = f"both minus the sum: {100 * at_cold:+.3f} % cold, {100 * at_hot:+.3f} % after warming up"
    figures = {
        "cold": CheckedFigure(at_cold, "", f"within {100 * limit:.2g} %, and noise"),
        "hot": CheckedFigure(at_hot, "", f"within {100 * limit:.2g} %, and noise"),
        "self_heating": CheckedFigure(at_hot - at_cold, ""),
        "current_a": CheckedFigure(hot.both.current_a, "A"),
    }
    faults = Defects()
    if abs(at_cold) > limit + 2 * cold.residual_u():
        faults.add(
            f"the currents of two loads do not add up: {100 * at_cold:+.2f} % (cold)",
            "reconnect the loads with firm clips and repeat; if this does not help, the shunt heats within seconds or "
            "one of its solder joints is bad",
        )
    if abs(at_hot) > limit + 2 * hot.residual_u():
        faults.add(
            f"after warming up the currents do not add up: {100 * at_hot:+.2f} % at {hot.both.current_a:.2f} A; the "
            "shunt heats itself",
            "use a shunt of 20 milliohm, at most 50 ppm/K, 2 W (docs/how-to/wire-the-rig.md); or calibrate the "
            "sensor, which fits its heating (docs/how-to/calibrate.md)",
        )
    return Verdict.of(words, faults, figures)
