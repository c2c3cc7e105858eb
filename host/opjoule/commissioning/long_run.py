"""Steps of one long recording of an idle board: errors of the meter's chain, and the idle power."""

from __future__ import annotations

from typing import Final

from opjoule.commissioning.desk import OpenDesk, Setup
from opjoule.commissioning.recorded import DeskRecording
from opjoule.commissioning.verdict import CheckedFigure, Defect, Defects, StepOutcome, Verdict
from opjoule.devices.profiles import Profile

_BUS: Final = ("i2c_nack", "i2c_timeout", "i2c_bus_error", "i2c_held", "sensor_reset")
_LINE: Final = ("transmit_full", "receive_overrun", "receive_bad_frame")
_LINK: Final = ("bad_cobs", "bad_crc", "bad_length", "lost_frames")
_BUS_ADVICE: Final = (
    "SDA and SCL below 20 cm and away from the supply's wires, 4.7 kohm from each to 5 V (3.3 V with a controller of "
    "3.3 V), one ground wire to the breakout, fresh solder (docs/how-to/wire-the-rig.md, The bus)"
)
_LINE_ADVICE: Final = "another USB cable and port, no hub between; end programs that keep this computer busy"


def take_long(desk: OpenDesk) -> DeskRecording:
    """Records the idle board for minutes."""
    desk.set_up(Setup.BOARD)
    return desk.take("long", desk.pace.long_s)


def judge_errors(recorded: DeskRecording) -> Verdict:
    """Whether the chain from the sensor to this computer lost or damaged anything."""
    captured = recorded.captured
    counts: dict[str, int] = {name: count for name, count in captured.losses.faults.items() if count}
    damaged = {name: captured.losses.link.get(name, 0) for name in _LINK if captured.losses.link.get(name)}
    bus: dict[str, int] = {name: counts[name] for name in _BUS if name in counts}
    line = {name: counts[name] for name in _LINE if name in counts} | damaged
    missed = counts.get("conversion_missed", 0) + captured.losses.lost_samples
    seconds = float(recorded.trace.meter_ns[-1] - recorded.trace.meter_ns[0]) * 1e-9
    figures = {
        "bus_errors": CheckedFigure(sum(bus.values()), "", "none"),
        "missed": CheckedFigure(missed, "conversions", "none"),
        "bad_frames": CheckedFigure(sum(line.values()), "", "none"),
        "length_s": CheckedFigure(seconds, "s"),
    }
    faults = Defects()
    if bus:
        faults.add(f"errors on the I2C bus: {_counts(bus)}", _BUS_ADVICE)
    if line:
        faults.add(f"frames are damaged or lost: {_counts(line)}", _LINE_ADVICE)
    if missed:
        faults.add(f"{missed} conversions are missing", _LINE_ADVICE if line else _BUS_ADVICE)
    if captured.ended:
        faults.add(f"the meter stopped: {captured.ended}", "its supply and USB cable")
    words = f"{captured.samples} samples in {seconds:.0f} s, no error" if not faults else f"{seconds:.0f} s"
    return Verdict.of(words, faults, figures)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def judge_idle(recorded: DeskRecording, profile: Profile) -> Verdict:
    """Whether the idle power is one that such a board may have: a warning only."""
    good = recorded.trace.good
    idle_w = float(recorded.corrected.power_w[good].mean())
    words = f"{idle_w:.2f} W idle"
    if profile.idle_w is None:
        return Verdict.of(
            f"{words}; what is plausible for a {profile.title} is not known",
            [],
            {"idle_w": CheckedFigure(idle_w, "W")},
        )
    low_w, high_w = profile.idle_w
    figures = {"idle_w": CheckedFigure(idle_w, "W", f"{low_w:g} to {high_w:g} W (a warning only)")}
    if low_w <= idle_w <= high_w:
        return Verdict.of(words, [], figures)
    more = "more" if idle_w > high_w else "less"
    advice = (
        "what else hangs on the board (a disk, a fan, HDMI, Wi-Fi), and what runs on it ('top')"
        if idle_w > high_w
        else "a second supply, the shunt= in rig.toml, the steps above"
    )
    fault = Defect(
        f"{more} than a {profile.title} usually takes ({low_w:g} to {high_w:g} W)", f"look at {advice}"
    )
    return Verdict.of(words, [fault], figures, broken=StepOutcome.WARNING)
