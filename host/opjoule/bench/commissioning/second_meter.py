"""The step of a second meter in series: both energies of the same stretches, and the loss between the meters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.bench.commissioning.desk import (
    BETWEEN_SHARE_MAX,
    SUPPLY_SIDE,
    CheckedFigure,
    Defects,
    OpenDesk,
    Picture,
    Setup,
    Verdict,
)
from opjoule.bench.commissioning.load_course import PlayedLevel, map_of_levels, play_level
from opjoule.bench.commissioning.running import DeskRecording, Running
from opjoule.clocks.clock_map import ClockMap
from opjoule.clocks.exchanges import fit_exchanges
from opjoule.energy.error_bounds import SQRT3
from opjoule.energy.window import EnergyResult, Window, window_energy_j

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
