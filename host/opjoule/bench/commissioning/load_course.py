"""Steps with the board as the load: load steps up and down, full load, a second meter in series, and an idle board."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.notices import Notice, NoticeKind
from opjoule.bench.commissioning.desk import (
    BETWEEN_SHARE_MAX,
    SUPPLY_SIDE,
    CheckedFigure,
    Defects,
    DeskRecording,
    OpenDesk,
    Picture,
    Running,
    Setup,
    StepOutcome,
    Verdict,
)
from opjoule.bench.commissioning.medium_bytes import write_file
from opjoule.bench.commissioning.sync_line import clock_evidence
from opjoule.boards.board import Board
from opjoule.boards.profiles import Profile
from opjoule.boards.rig_board import CHIP_MS, LEAD_S, PERIOD_NS, TAIL_S, pattern
from opjoule.boards.state_gate import flag_lines
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.exchanges import fit_exchanges
from opjoule.energy.calibration.line_fit import LinePoint, fit_line
from opjoule.energy.calibration.means import MeanReading, mean_reading
from opjoule.energy.error_bounds import SQRT3, SWAPPED, ErrorBounds
from opjoule.energy.least_voltage import least_voltage
from opjoule.energy.window import EnergyResult, Window, window_energy_j
from opjoule.runs.evaluation.alignment import align

REPEAT_MAX: Final = 0.005
RISE_MIN: Final = 0.1
"""Least increase of the power from idle to full load, as a share of idle; boards of the profiles add half or more."""
CABLE_MAX_OHM: Final = 0.2
SPAN_U: Final = 10.0
"""Least span of the currents, in their standard uncertainties, that determines a line."""
HEADROOM_V: Final = 0.1
CABLE_OHM: Final = "cable_ohm"
CABLE_U_OHM: Final = "cable_u_ohm"
_BUS: Final = ("i2c_nack", "i2c_timeout", "i2c_bus_error", "i2c_held", "sensor_reset")
_LINE: Final = ("transmit_full", "receive_overrun", "receive_bad_frame")
_LINK: Final = ("bad_cobs", "bad_crc", "bad_length", "lost_frames")
_BUS_ADVICE: Final = (
    "keep SDA and SCL below 20 cm and away from the supply's wires, with 4.7 kohm from each to 5 V (3.3 V with a "
    "controller of 3.3 V); use one ground wire to the breakout; solder again (docs/how-to/wire-the-rig.md, The bus)"
)
_LINE_ADVICE: Final = "use another USB cable and port without a hub; end programs that keep this computer busy"


@dataclass(frozen=True)
class PlayedLevel:
    """One step of the load that the board has played."""

    level: int
    start_board_ns: int
    end_board_ns: int


@dataclass(frozen=True)
class LevelReading:
    """The meter's reading of one step."""

    level: int
    read: MeanReading

    @property
    def power_w(self) -> float:
        """Mean power [W]."""
        return self.read.current_a * self.read.voltage_v


def play_level(board: Board, level: int, seconds: float) -> PlayedLevel:
    """Has the board play one step; returns the part that counts, which is whole periods of the pattern."""
    chips = pattern(level, LEAD_S + seconds + TAIL_S)
    start_ns, end_ns = board.probe.play_signature(chips, CHIP_MS)
    first_ns = start_ns + round(LEAD_S * 1e9)
    periods = max((end_ns - round(TAIL_S * 1e9) - first_ns) // PERIOD_NS, 1)
    return PlayedLevel(level, first_ns, first_ns + periods * PERIOD_NS)


def map_of_levels(recorded: DeskRecording, levels: Sequence[PlayedLevel]) -> ClockMap:
    """Clock map that places the steps in a recording."""
    evidence = clock_evidence(recorded)
    return align(evidence, (levels[0].start_board_ns, levels[-1].end_board_ns)).board_to_meter


def levels(desk: OpenDesk) -> Verdict:
    """Plays load steps up to the full load and back, and judges their readings."""
    desk.set_up(Setup.BOARD)
    up = desk.pace.levels
    with desk.prepared() as board, desk.recording("levels", board) as running:
        running.wait(1.0)
        played = [play_level(board, level, desk.pace.level_s) for level in (*up, *up[-2::-1])]
        running.catch_up_to(played[-1].end_board_ns)
    recorded = running.recorded()
    placed = map_of_levels(recorded, played)
    return judge_levels([read_level(recorded, placed, level) for level in played], recorded.bounds)


def read_level(recorded: DeskRecording, placed: ClockMap, played: PlayedLevel) -> LevelReading:
    """Means over one step. Raises: CalibrationFault: the load was not steady, or out of range."""
    start_ns, end_ns = placed.to_target(played.start_board_ns), placed.to_target(played.end_board_ns)
    u_ns = placed.u_ns(played.start_board_ns)
    read = mean_reading(recorded.cells, start_ns, end_ns, recorded.bounds, u_ns=u_ns, period_ns=PERIOD_NS)
    return LevelReading(played.level, read)


def judge_levels(readings: Sequence[LevelReading], bounds: ErrorBounds) -> Verdict:
    """Judges whether the power rises with the load and repeats on the way back, and the resistance of the supply."""
    top = max(range(len(readings)), key=lambda place: readings[place].level)
    up, down = readings[: top + 1], {reading.level: reading for reading in readings[top + 1 :]}
    apart = max(
        (abs(down[point.level].power_w / point.power_w - 1) for point in up if point.level in down),
        default=0.0,
    )
    faults = _course_faults(up, apart)
    figures = {
        "repeat": CheckedFigure(apart, "", f"at most {100 * REPEAT_MAX:g} %"),
        "idle_w": CheckedFigure(up[0].power_w, "W"),
        "full_w": CheckedFigure(up[-1].power_w, "W"),
    }
    picture, stiff = _line(readings, bounds)
    figures |= stiff
    cable_ohm, u_ohm = (stiff[name].value if stiff else 0.0 for name in (CABLE_OHM, CABLE_U_OHM))
    if bounds.voltage_step_v and (not stiff or 2 * u_ohm > CABLE_MAX_OHM):
        faults.add(
            "the load changes too little to determine the cable's resistance",
            "repeat with a load that changes more, and a supply without ripple",
        )
    elif stiff and cable_ohm > CABLE_MAX_OHM + 2 * u_ohm:
        faults.add(
            f"supply, fuse and cable have {cable_ohm:.2f} ohm, and {CABLE_MAX_OHM:g} ohm are allowed",
            "use a shorter, thicker cable (1 mm\N{SUPERSCRIPT TWO}, 30 cm), another fuse holder or fewer plugs: the "
            "board's voltage falls by this much per ampere",
        )
    cable = f", {cable_ohm:.3f} \N{PLUS-MINUS SIGN} {2 * u_ohm:.3f} ohm of supply and cable" if stiff else ""
    words = f"{up[0].power_w:.2f} to {up[-1].power_w:.2f} W, repeats within {100 * apart:.2f} %{cable}"
    return Verdict.of(words, faults, figures, picture)


def _course_faults(up: Sequence[LevelReading], apart: float) -> Defects:
    """Defects of the powers of a rising load; `apart` is the largest relative difference on the way back."""
    faults = Defects()
    if max(point.read.current_a for point in up) < 0:
        faults.add("the current flows backwards", SWAPPED)
    fallen = [(low.level, high.level) for low, high in pairwise(up) if abs(high.power_w) < abs(low.power_w)]
    if fallen:
        faults.add(
            f"the power falls from load {fallen[0][0]} to {fallen[0][1]} of 8",
            "see that the sensor measures this board, and that the board is not throttled "
            "(docs/how-to/prepare-the-board.md)",
        )
    rise = abs(up[-1].power_w) / abs(up[0].power_w) - 1
    if rise < RISE_MIN:
        faults.add(
            f"the full load adds only {100 * rise:.1f} % to the idle power",
            "see that the sensor measures this board, and end programs that keep its processors busy",
        )
    if apart > REPEAT_MAX:
        faults.add(
            f"the same load differs by {100 * apart:.2f} % on the way back, and {100 * REPEAT_MAX:g} % are allowed",
            "fix the clock frequency and the fan (docs/how-to/prepare-the-board.md), end other programs on the "
            "board, and repeat; if this does not help, a contact in the supply changes",
        )
    return faults


def _line(readings: Sequence[LevelReading], bounds: ErrorBounds) -> tuple[Picture | None, dict[str, CheckedFigure]]:
    """Voltage against current, and the resistance between supply and the sensor's voltage, without the shunt."""
    if not bounds.voltage_step_v:
        return None, {}
    read = [reading.read for reading in readings]
    points = [
        LinePoint(
            mean.current_a,
            max(mean.current_u_a, bounds.current_step_a / 4),
            mean.voltage_v,
            max(mean.voltage_u_v, bounds.voltage_step_v / 4),
        )
        for mean in read
    ]
    readings_a = [point.reading for point in points]
    if max(readings_a) - min(readings_a) < SPAN_U * max(point.reading_u for point in points):
        return None, {}
    fit = fit_line(points)
    widened = max(fit.chi_squared / max(fit.degrees, 1), 1.0) ** 0.5
    shunt_ohm = bounds.shunt.ohm if bounds.shunt else 0.0
    picture = Picture(
        [mean.current_a for mean in read], [mean.voltage_v for mean in read], "A", "V", fit.gain, fit.offset
    )
    u_ohm = widened * float(fit.covariance[0, 0]) ** 0.5
    return picture, {
        CABLE_OHM: CheckedFigure(-fit.gain - shunt_ohm, "ohm", f"at most {CABLE_MAX_OHM:g} ohm"),
        CABLE_U_OHM: CheckedFigure(u_ohm, "ohm"),
        "open_v": CheckedFigure(fit.offset, "V"),
    }


def take_full(desk: OpenDesk) -> tuple[DeskRecording, list[str]]:
    """Records the board while all processors are busy and the medium is written.

    Returns: the recording, and reports of the board's firmware about its supply, one line each.
    """
    desk.set_up(Setup.BOARD)
    with desk.prepared() as board, desk.recording("full", board) as running:
        running.wait(1.0)
        watch = board.watch_state()
        if watch:
            watch.start()
        size = min(desk.pace.written_bytes, 64 << 20)
        writer = threading.Thread(target=write_file, args=(board, size, "full"), daemon=True)
        writer.start()
        played = play_level(board, 8, desk.pace.full_s)
        writer.join()
        running.catch_up_to(played.end_board_ns)
        flags = watch.stop().flags_seen if watch else 0
    return running.recorded(), flag_lines(flags)


def judge_full(recorded: DeskRecording, flags: Sequence[str], profile: Profile) -> Verdict:
    """Judges whether the supply's voltage is high enough and the current is within the sensor's range.

    Args:
        flags: reports of the board's firmware about its supply.
    """
    least = least_voltage(recorded.corrected, recorded.bounds) if recorded.bounds.voltage_step_v else None
    most_a = float(recorded.corrected.current_a[recorded.trace.good].max())
    clipped = recorded.captured.clipped_samples
    figures = {
        "most_a": CheckedFigure(most_a, "A", f"below {recorded.bounds.current_max_a:g} A"),
        "clipped": CheckedFigure(clipped, "samples", "none"),
    }
    faults = Defects()
    limit_v = profile.least_voltage_v
    if least and limit_v is not None:
        figures["least_v"] = CheckedFigure(least.voltage_v, "V", f"at least {limit_v + HEADROOM_V:g} V")
        if least.is_under(limit_v + HEADROOM_V):
            faults.add(
                f"the board's voltage falls to {least.voltage_v:.2f} V, and its limit is {limit_v:g} V",
                f"use a shunt of 20 milliohm, a supply of {profile.supply_voltage_v[1]:g} V, or a shorter and thicker "
                "cable",
            )
    if clipped:
        faults.add(
            f"{clipped} samples are at the end of the sensor's range",
            "use a wider range= or a smaller shunt (docs/reference/sensors.md)",
        )
    for flag in flags:
        faults.add(
            flag,
            "the supply is too weak for this load: check the voltage above, and the board's own cable and plug",
        )
    low = f", at least {least.voltage_v:.2f} V" if least else ""
    return Verdict.of(f"up to {most_a:.2f} A{low}, {len(flags)} flags", faults, figures)


def take_long(desk: OpenDesk) -> DeskRecording:
    """Records the idle board for several minutes."""
    desk.set_up(Setup.BOARD)
    return desk.take("long", desk.pace.long_s)


def judge_errors(recorded: DeskRecording) -> Verdict:
    """Judges whether anything was lost or damaged between the sensor and this computer."""
    captured = recorded.captured
    counts, damaged = captured.losses.faults, captured.losses.link
    bus = {name: counts[name] for name in _BUS if counts.get(name)}
    line = {name: counts[name] for name in _LINE if counts.get(name)}
    line |= {name: damaged[name] for name in _LINK if damaged.get(name)}
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
        faults.add(f"the meter stopped: {captured.ended}", "check its supply and USB cable")
    words = f"{captured.samples} samples in {seconds:.0f} s, no error" if not faults else f"{seconds:.0f} s"
    return Verdict.of(words, faults, figures)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def judge_idle(recorded: DeskRecording, profile: Profile) -> Verdict:
    """Judges whether the idle power is plausible for the board; gives at most a warning."""
    good = recorded.trace.good
    idle_w = float(recorded.corrected.power_w[good].mean())
    words = f"{idle_w:.2f} W idle"
    if profile.idle_w is None:
        words += f"; the plausible range of a {profile.title} is not known"
        return Verdict.of(words, [], {"idle_w": CheckedFigure(idle_w, "W")})
    low_w, high_w = profile.idle_w
    figures = {"idle_w": CheckedFigure(idle_w, "W", f"{low_w:g} to {high_w:g} W (a warning only)")}
    if low_w <= idle_w <= high_w:
        return Verdict.of(words, [], figures)
    more, advice = "less", "whether there is a second supply, shunt= in rig.toml, and the steps above"
    if idle_w > high_w:
        more = "more"
        advice = "what else is connected to the board (a disk, a fan, HDMI, Wi-Fi) and what runs on it ('top')"
    fault = Notice(
        NoticeKind.MEND, f"{more} than a {profile.title} usually takes ({low_w:g} to {high_w:g} W)", f"check {advice}"
    )
    return Verdict.of(words, [fault], figures, broken=StepOutcome.WARNING)


LAG_U_NS: Final = 1_000_000.0
"""Least standard uncertainty of a stretch's place on either meter: how well the board's load follows its stamps."""


@dataclass(frozen=True)
class BothEnergies:
    """Energies of one stretch from both meters."""

    level: int
    rig_j: float
    rig_u_j: float
    """Expanded (k = 2); includes the sensor's gain and offset."""
    second_j: float
    second_u_j: float
    loss_j: float
    """Energy lost between the two places where the meters read the voltage, computed from the rig's current."""
    loss_u_j: float
    """Expanded (k = 2)."""

    @property
    def apart_j(self) -> float:
        """Energy of the second meter minus that of the rig, both at the rig's place."""
        return self.second_j - self.loss_j - self.rig_j

    @property
    def allowed_j(self) -> float:
        """Largest difference that the uncertainties allow (k = 2)."""
        return math.hypot(self.rig_u_j, self.second_u_j, self.loss_u_j)


def second_meter(desk: OpenDesk) -> Verdict:
    """Records both meters at several loads and compares their energies."""
    if desk.second is None:
        return Verdict.skipped("there is no second meter")
    desk.set_up(Setup.SECOND_METER)
    second = desk.second
    with (
        desk.prepared() as board,
        desk.recording("rig", board) as running,
        Running(second, desk.folder / "second") as beside,
    ):
        running.wait(1.0)
        played = [play_level(board, level, desk.pace.level_s) for level in desk.pace.series_levels]
        running.catch_up_to(played[-1].end_board_ns)
        beside.catch_up()
    rig, other = running.recorded(), beside.recorded()
    placed = map_of_levels(rig, played)
    host = fit_exchanges(rig.meter_exchanges, "host", "meter").inverse()
    to_second = placed.then(host).then(fit_exchanges(other.meter_exchanges, "host", "second"))
    between_ohm = float(desk.parts.between_ohm)
    shunt_ohm = rig.bounds.shunt.ohm if rig.bounds.shunt else 0.0
    on_supply = desk.parts.second_side == SUPPLY_SIDE
    ohm = between_ohm + shunt_ohm if on_supply else -between_ohm
    return judge_second([_energies(level, rig, placed, other, to_second, ohm) for level in played])


def _energies(
    played: PlayedLevel,
    rig: DeskRecording,
    to_rig: ClockMap,
    other: DeskRecording,
    to_second: ClockMap,
    ohm: float,
) -> BothEnergies:
    """Energies of one stretch from both recordings; `ohm` is negative if the second meter is nearer to the board."""
    window = _window(to_rig, played)
    rig_energy = window_energy_j(rig.cells, window, rig.bounds)
    beside = window_energy_j(other.cells, _window(to_second, played), other.bounds)
    inside = rig.cells.inside(window.start_ns, window.end_ns)
    current_a = rig.cells.of_samples(rig.cells.current_a, inside)
    noise_a2 = rig.cells.noise_a**2
    square_a2 = max(float(np.mean(current_a**2)) - noise_a2, 0.0)
    loss_j = ohm * square_a2 * window.duration_s
    loss_u_j = COVERAGE_FACTOR * abs(loss_j) * BETWEEN_SHARE_MAX / SQRT3
    energies = (float(rig_energy.energy), _expanded(rig_energy), float(beside.energy), _expanded(beside))
    return BothEnergies(played.level, *energies, loss_j, loss_u_j)


def _window(placed: ClockMap, played: PlayedLevel) -> Window:
    window = Window.on_meter(placed, played.start_board_ns, played.end_board_ns)
    return replace(window, u_ns=max(window.u_ns, LAG_U_NS))


def _expanded(result: EnergyResult) -> float:
    """Half width of the energy's interval; the energy itself if there is no interval (clipped samples)."""
    return result.energy.u if result.energy.u is not None else abs(float(result.energy))


def judge_second(energies: Sequence[BothEnergies]) -> Verdict:
    """Judges whether both meters agree in every stretch."""
    shares = [energy.apart_j / energy.rig_j for energy in energies]
    worst = max(energies, key=lambda energy: abs(energy.apart_j) / max(energy.allowed_j, 1e-9))
    share, allowed = worst.apart_j / worst.rig_j, worst.allowed_j / abs(worst.rig_j)
    figures = {
        "apart": CheckedFigure(share, "", f"within {100 * allowed:.2g} % (both intervals, k = 2)"),
        "loss": CheckedFigure(worst.loss_j / worst.rig_j, ""),
    }
    words = f"the second meter differs by {100 * share:+.2f} %, and {100 * allowed:.2g} % are within both intervals"
    faults = Defects()
    if abs(worst.apart_j) > worst.allowed_j:
        faults.add(
            f"the two meters differ by {100 * share:+.2f} %, and their intervals allow {100 * allowed:.2g} %",
            "exchange the meters' places and repeat: a difference that follows the place is a loss between them that "
            "was not stated; one that follows a meter is its own error: calibrate that meter "
            "(docs/how-to/calibrate.md), or check the date of its certificate",
        )
    picture = Picture(
        [energy.level for energy in energies],
        [100 * share for share in shares],
        "load, eighths",
        "second minus rig, %",
    )
    return Verdict.of(words, faults, figures, picture)
