"""Energies of a further sensor over the phases of a run, against a trace whose power is known."""

import numpy as np
import pytest
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.cells import Cells
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.quantities.common import SENSORS
from opjoule.runs.evaluation.summary import sensor_energies
from usual_phases import usual_phase

STEP_NS = 1_000_000
BOARD_AHEAD_NS = 5_000_000_000
IDLE_W, RUN_W = 0.5, 2.0


def phase(name, repeat, start_s, end_s):
    return usual_phase(name, repeat, BOARD_AHEAD_NS + int(start_s * 1e9), BOARD_AHEAD_NS + int(end_s * 1e9))


PHASES = [
    phase("idle-before", 1, 1, 4),
    phase("run", 1, 5, 15),
    phase("settle", 1, 15, 16),
    phase("idle-after", 1, 17, 20),
]


@pytest.fixture(scope="module")
def figures():
    """An SSD of 0.5 W that takes 2 W during run and settle, on a board clock 5 s ahead of the meter's."""
    meter_ns = np.arange(21_000, dtype=np.int64) * STEP_NS
    busy = (meter_ns >= 5_000_000_000) & (meter_ns < 16_000_000_000)
    volts = np.full(meter_ns.size, 5.0)
    trace = PowerTrace.of(meter_ns, np.where(busy, RUN_W, IDLE_W) / volts, volts, [])
    board_to_meter = ClockMap(
        source="board", target="meter", source_ref_ns=BOARD_AHEAD_NS, target_ref_ns=0, rate=1.0, u_offset_ns=1e3,
        u_rate=1e-9, method="sync-edges", residual_ns=100.0, n=30,
    )  # fmt: skip
    return sensor_energies(PHASES, AlignedTrace(Cells.of(trace), ina219_breakout(), board_to_meter))


def test_every_number_is_there(figures):
    assert [f"by_sensor.*.{key}" for key in figures] == [quantity.key for quantity in SENSORS]
    assert {
        "run_energy_j",
        "write_back_energy_j",
        "energy_j",
        "marginal_energy_j",
        "power_w",
        "idle_power_w",
        "lost_samples",
    } == set(figures)


def test_energy_is_that_of_the_run_and_of_settle_above_idle_and_marginal_energy_leaves_idle_out(figures):
    assert figures["run_energy_j"].value == pytest.approx(10 * RUN_W, rel=1e-3)
    assert figures["energy_j"].value == pytest.approx(10 * RUN_W + (RUN_W - IDLE_W), rel=1e-3)
    assert figures["marginal_energy_j"].value == pytest.approx(11 * (RUN_W - IDLE_W), rel=1e-3)
    assert figures["power_w"].value == pytest.approx(RUN_W, rel=1e-3)
    assert figures["idle_power_w"].value == pytest.approx(IDLE_W, rel=1e-3)
    assert figures["write_back_energy_j"].value == pytest.approx(RUN_W - IDLE_W, rel=1e-3), "in settle"
    assert 0 < figures["energy_j"].u < 0.1 * figures["energy_j"].value
