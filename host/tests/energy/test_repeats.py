"""Figures of several repeats from a synthetic trace: each figure has its own spread, and no other's."""

from dataclasses import replace

import numpy as np
import pytest
from opjoule.base.notices import NoticeKind
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.cells import Cells
from opjoule.energy.trace.power_trace import Gap, PowerTrace
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.faults import trace_faults
from opjoule.runs.evaluation.quantities.common import COMMON
from opjoule.runs.evaluation.quantities.definition import Quantities, Repeat
from opjoule.runs.evaluation.repeat_energy import repeat_energy
from opjoule.runs.evaluation.summary import sensor_energies
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY
from usual_phases import usual_phase

STEP_NS = 1_000_000
IDLE_W, RUN_W = 3.0, 4.0
RUNS_S = (1.4, 3.0, 4.5)
MAP = ClockMap("board", "meter", 0, 0, 1.0, 1e3, 1e-9, "sync-edges", 100.0, 30)


def phases():
    made, at = [], 2.0
    for repeat, run_s in enumerate(RUNS_S, 1):
        for name, length_s in (("idle-before", 3.0), ("run", run_s), ("settle", 6.0), ("idle-after", 3.0)):
            lead_in_s = 1.0 if "idle" in name else 0.0
            made.append(usual_phase(name, repeat, round(at * 1e9), round((at + length_s) * 1e9), 1000, lead_in_s))
            at += length_s
    return made


def trace_of(change=lambda power_w, meter_s: power_w):
    timeline = phases()
    meter_ns = np.arange(0, timeline[-1].end_board_ns + 2_000_000_000, STEP_NS, dtype=np.int64)
    power_w = np.full(meter_ns.size, IDLE_W)
    for phase in timeline:
        inside = (meter_ns >= phase.start_board_ns) & (meter_ns < phase.end_board_ns)
        power_w[inside & (phase.name == "run")] = RUN_W
    power_w = change(power_w, meter_ns * 1e-9)
    return PowerTrace.of(meter_ns, power_w / 5.0, np.full(meter_ns.size, 5.0), [])


def energies(change=lambda power_w, meter_s: power_w):
    return sensor_energies(phases(), AlignedTrace(Cells.of(trace_of(change)), ina219_breakout(), MAP))


def clipped_in(name):
    """The first repeat of a trace of which ten samples of one phase are at the end of the meter's range."""
    trace = trace_of()
    start_ns = next(phase.end_board_ns for phase in phases() if phase.name == name) - 1_000_000_000
    clipped = (trace.meter_ns >= start_ns) & (trace.meter_ns < start_ns + 10 * STEP_NS)
    aligned = AlignedTrace(Cells.of(replace(trace, clipped=clipped)), ina219_breakout(), MAP)
    return repeat_energy(aligned, phases(), 1)


def test_power_is_not_made_uncertain_by_runs_of_different_length():
    """It was 5 to 21 times too wide: the spread of the energy, which is that of the durations, was divided by time."""
    figures = energies()
    assert figures["power_w"].u is not None
    assert figures["power_w"].value == pytest.approx(RUN_W, rel=1e-3)
    assert figures["power_w"].relative_u < 0.02
    assert figures["run_energy_j"].relative_u > 0.5  # the runs do differ by three times


def test_the_start_of_an_idle_phase_is_left_out():
    """A board that has just been left alone is not at rest yet."""

    def restless(power_w, meter_s):
        for phase in phases():
            start_s = phase.start_board_ns * 1e-9
            if phase.name == "idle-before":
                power_w[(meter_s >= start_s) & (meter_s < start_s + 0.9)] += 1.0
        return power_w

    assert energies(restless)["idle_power_w"].value == pytest.approx(IDLE_W, rel=1e-3)


def test_waiting_at_idle_power_is_nobodys_operation():
    """Six seconds of settle at idle power are 18 J, which were 80 % of the figure."""
    figures = energies()
    assert figures["energy_j"].value == pytest.approx(figures["run_energy_j"].value, rel=5e-3)
    assert figures["marginal_energy_j"].value == pytest.approx((RUN_W - IDLE_W) * np.mean(RUNS_S), rel=5e-3)


def test_a_run_with_clipped_samples_gives_lower_bounds_and_a_fault():
    """A run with 714 clipped samples was 28 % too low, 1.5 % stated."""
    energy = clipped_in("run")
    (fault,) = trace_faults(1, energy, ina219_breakout())
    assert "repeat 1, run: 10 samples" in fault.line
    assert "lower bounds" in fault.line
    assert fault.withholds == ()
    figures = Quantities(COMMON).figures(Repeat(1, energy, RUNS_S[0]))
    for key in ("run_energy_j", "energy_j", "marginal_energy_j", "power_w"):
        figure = figures[key]
        assert figure.value is not None
        assert figure.unbounded
        assert figure.u is None
    write_back = figures["write_back_energy_j"]
    assert write_back.value is not None
    assert not write_back.unbounded


def test_clipped_idle_withholds_what_is_above_it():
    (fault,) = trace_faults(1, clipped_in("idle-before"), ina219_breakout())
    assert "idle is unknown" in fault.line
    assert fault.withholds == (ABOVE_IDLE,)
    assert (
        trace_faults(
            1,
            repeat_energy(AlignedTrace(Cells.of(trace_of()), ina219_breakout(), MAP), phases(), 1),
            ina219_breakout(),
        )
        == []
    )


def test_a_swapped_sensor_is_a_fault_that_says_what_to_do():
    trace = trace_of()
    swapped = PowerTrace.of(trace.meter_ns, -trace.current_a, trace.voltage_v)
    energy = repeat_energy(AlignedTrace(Cells.of(swapped), ina219_breakout(), MAP), phases(), 1)
    (fault,) = trace_faults(1, energy, ina219_breakout())
    assert "VIN+" in fault.remedy and fault.kind is NoticeKind.REVERSED
    assert fault.withholds == (ENERGY,)


def test_a_window_with_two_per_cent_lost_is_reported_and_keeps_its_figure():
    trace = trace_of()
    start_ns = next(phase.start_board_ns for phase in phases() if phase.name == "run")
    lost = (trace.meter_ns >= start_ns + 500_000_000) & (trace.meter_ns < start_ns + 528_000_000)
    current_a, voltage_v = trace.current_a.copy(), trace.voltage_v.copy()
    current_a[lost] = voltage_v[lost] = np.nan
    gap = Gap.between(start_ns + 500_000_000 - STEP_NS, start_ns + 528_000_000, 28, "cable")
    holed = PowerTrace.of(trace.meter_ns, current_a, voltage_v, [gap])
    energy = repeat_energy(AlignedTrace(Cells.of(holed), ina219_breakout(), MAP), phases(), 1)
    (fault,) = trace_faults(1, energy, ina219_breakout())
    assert "repeat 1, run: 2." in fault.line
    assert fault.withholds == ()
    assert energy.run.energy.value == pytest.approx(RUN_W * RUNS_S[0], rel=0.01)
