"""Simulates one measurement with an unmarked breakout, through the real firmware in virtual time. SIMULATED.

The shunt is unmarked, is not sensed at its own pads and heats up. The chip may be a copy with a voltage error.

The data are processed as usual: serial meter on the simulator's port, trace, clock map from sync edges, energies of a
repeat. The true values come from the simulator and from the drawn properties; the estimate never sees them.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from opjoule.base.errors import OpJouleError
from opjoule.bench.simulation.simulators import Imperfections
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import COPPER_MAX_OHM, UNMARKED_TOLERANCE, ErrorBounds, Shunt
from opjoule.energy.operations.board_files import BoardEdges
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.energy.shunt_heat import Heating
from opjoule.energy.trace.journal import read_edges
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.chips import COPY_BUS_GAIN_ERROR_MAX, INA219, default_settings
from opjoule.runs.evaluation.alignment import AlignedTrace, ClockEvidence, align
from opjoule.runs.evaluation.quantities.common import COMMON
from opjoule.runs.evaluation.quantities.definition import Quantities, Repeat, over_repeats
from opjoule.runs.evaluation.repeat_energy import repeat_energy
from opjoule.runs.record.phases import Phase
from random_load import Load, draw_load
from rig_session import record
from usual_phases import usual_phase

__all__ = ["QUANTITIES", "Measurement", "OpJouleError", "measure"]
QUANTITIES = (
    "energy_j",
    "marginal_energy_j",
    "run_energy_j",
    "idle_power_w",
    "write_back_energy_j",
    "power_w",
)
BOARD_START_NS = 5_000_000_000_000
SETTINGS = default_settings(0, INA219)
NOMINAL_OHM = 0.1


@dataclass(frozen=True)
class Measurement:
    """Results of one seed."""

    seed: int
    kind: str
    delivered: Mapping[str, tuple[float, float, float, float]]
    """quantity -> value, printed u, true value, standard uncertainty; the sensor as delivered"""
    known: Mapping[str, tuple[float, float, float, float]]
    """the same with gain and offset known"""
    budget: Mapping[str, Mapping[str, float]]
    """quantity -> part -> standard uncertainty, gain and offset known"""

    def to_json(self) -> dict[str, Any]:
        """Entry of the journal."""
        return asdict(self)


def measure(seed: int) -> Measurement:
    """Draws, plays, records and evaluates the measurement of one seed."""
    chance = random.Random(seed)
    load, drawn = draw_load(chance), unmarked(Imperfections.draw(chance), chance)
    edges_s = _edge_times_s(chance, load)
    options = [*drawn.options(), f"--supply-ohm={drawn.supply_ohm}", "--seed", str(seed)]
    with tempfile.TemporaryDirectory(prefix="opjoule-coverage-") as folder:
        rig = record(
            Path(folder),
            load.rows,
            edges_s,
            *options,
            voltage_v=drawn.supply_open_v,
            end_s=load.end_s,
            settings=SETTINGS,
        )
        meter_edges = read_edges(Path(folder))
    board_edges, phases = _board_side(chance, load, edges_s)
    seen_fraction = INA219.times(SETTINGS).seen_fraction
    bounds = INA219.error_bounds(SETTINGS.shunt_range, seen_fraction, Shunt(), genuine=False)
    run_s = next(phase.duration_s for phase in phases if phase.name == "run")
    over_ns = phases[0].start_board_ns, phases[-1].end_board_ns
    alignment = align(ClockEvidence(board_edges, meter_edges, [], []), over_ns)
    truth = _truth(load, rig.truth, drawn)

    def evaluate(trace: PowerTrace, sensor: ErrorBounds) -> tuple[dict[str, Any], dict[str, Any]]:
        energies = repeat_energy(AlignedTrace(Cells.of(trace), sensor, alignment.board_to_meter), phases, 1)
        figures = Quantities(COMMON).figures(Repeat(1, energies, run_s))
        printed_figures = {}
        for name in QUANTITIES:
            printed = over_repeats([figures[name]])
            assert printed.u is not None
            printed_figures[name] = (printed.value, printed.u, truth[name], printed.standard_u)
        budgets = {
            "run_energy_j": energies.run,
            "marginal_energy_j": energies.marginal,
            "energy_j": energies.energy,
        }
        budgets["write_back_energy_j"] = energies.write_back
        return printed_figures, {name: dict(energy.budget.parts) for name, energy in budgets.items() if energy}

    delivered, _ = evaluate(rig.trace, bounds)
    exact = _exact(drawn)
    known, budget = evaluate(exact.apply(rig.trace), replace(bounds, calibration=exact))
    return Measurement(seed, load.kind, delivered, known, budget)


def _edge_times_s(chance: random.Random, load: Load) -> list[float]:
    """Draws the sync line's edges: all phase boundaries, and irregular edges between them."""
    bounds_s = sorted({at_s for phase in load.phases_s.values() for at_s in phase})
    at_s, edges_s = 0.1, list(bounds_s)
    while at_s < load.end_s - 0.05:
        if min(abs(at_s - bound_s) for bound_s in bounds_s) > 0.02:
            edges_s.append(round(at_s, 6))
        at_s += chance.uniform(0.1, 0.4)
    return sorted(edges_s)


def _board_side(chance: random.Random, load: Load, edges_s: list[float]) -> tuple[BoardEdges, list[Phase]]:
    """Edges and phases on the clock of a board whose crystal is off by up to 30 ppm."""
    rate = 1 + chance.uniform(-30e-6, 30e-6)
    u_ns = 10 ** chance.uniform(2.5, 4)

    def board_ns(time_s: float) -> int:
        return BOARD_START_NS + round(time_s * rate * 1e9)

    stamps_ns = [board_ns(at_s) + round(chance.gauss(0, u_ns)) for at_s in edges_s]
    levels = [1 - index % 2 for index in range(len(edges_s))]
    edges = BoardEdges(
        np.array(stamps_ns, np.int64), np.array(levels, np.int8), np.full(len(edges_s), u_ns, np.float64)
    )
    phases = [
        usual_phase(name, 1, board_ns(start_s), board_ns(end_s)) for name, (start_s, end_s) in load.phases_s.items()
    ]
    return edges, phases


def _truth(load: Load, truth: Mapping[str, Any], drawn: Imperfections) -> dict[str, float]:
    """True figures: energies from the simulator's exact intervals, idle power from the drawn load."""

    def energy_j(name: str) -> float:
        start_s, end_s = load.phases_s[name]
        return sum(
            interval["energy_j"]
            for interval in truth["intervals"]
            if interval["start_s"] > start_s - 1e-7 and interval["end_s"] < end_s + 1e-7
        )

    def idle_j(name: str) -> float:
        return load.idle_j(*load.phases_s[name], drawn.supply_open_v, drawn.supply_ohm)

    def length_s(name: str) -> float:
        start_s, end_s = load.phases_s[name]
        return end_s - start_s

    run_j, write_back_j = energy_j("run"), energy_j("settle") - idle_j("settle")
    idles = ("idle-before", "idle-after")
    return {
        "run_energy_j": run_j,
        "write_back_energy_j": write_back_j,
        "energy_j": run_j + write_back_j,
        "marginal_energy_j": run_j + write_back_j - idle_j("run"),
        "power_w": run_j / length_s("run"),
        "idle_power_w": sum(idle_j(name) / length_s(name) for name in idles) / len(idles),
    }


def unmarked(drawn: Imperfections, chance: random.Random) -> Imperfections:
    """The rig with an unmarked shunt in series with some copper, and a chip that may be a copy."""
    cold = 1 + chance.uniform(-1, 1) * UNMARKED_TOLERANCE
    copper_ohm = chance.uniform(0, COPPER_MAX_OHM)
    return replace(
        drawn,
        shunt_ohm=round(NOMINAL_OHM * cold + copper_ohm, 8),
        bus_gain_error=round(chance.uniform(-1, 1) * COPY_BUS_GAIN_ERROR_MAX, 7),
    )


def _exact(drawn: Imperfections) -> SensorCalibration:
    """Perfect calibration of gain, offset and heating."""
    gain = drawn.shunt_ohm / NOMINAL_OHM * (1 + drawn.gain_error)
    offset_a = drawn.offset_uv * 1e-6 / NOMINAL_OHM
    k_per_w, tau_s = map(float, drawn.shunt_thermal.split(","))
    per_a2 = drawn.shunt_ppm * 1e-6 * k_per_w * drawn.shunt_ohm / gain**2
    return SensorCalibration(
        "exact",
        Correction(1 / gain, -offset_a / gain),
        Correction(1 / (1 + drawn.bus_gain_error)),
        heating=Heating(per_a2, tau_s, 0.0),
    )
