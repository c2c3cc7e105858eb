"""A sensor in the medium's supply: its energy is the sensor's, split by counters and pauses. SIMULATED."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from known_medium import Medium  # path set above
from known_meter import IDLE_S, KINDS, RUN_STARTS_S, measured, phases, watched
from known_pieces import Gridded, wander
from known_work import Known
from opjoule.attribution.activities import Intervals
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.budgets import SensorBudget, sum_of_sensors
from opjoule.attribution.counters import Counters
from opjoule.attribution.sensed_medium import MediumTrace, SensedMedium
from opjoule.attribution.sensed_parts import SensedParts
from opjoule.base.units import Quantity
from opjoule.bench.simulation.parts import Steady
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import MarginalEnergy
from opjoule.energy.budget import PARTS, Budget
from opjoule.energy.cells import Cells
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.runs.evaluation.repeat_energy import repeat_energy

MILLI = 1_000_000
IDLE_W, BUSY_W, TAIL_W = 0.2, 1.0, 0.4
SAME_CLOCK = ClockMap("board", "meter", 0, 0, 1.0, 1e3, 1e-9, "truth", 0, 100)


def marginal(energy_j, shared=None, **parts):
    budget = Budget({**dict.fromkeys(PARTS, 0.0), **parts}, {}, shared or {})
    return MarginalEnergy(budget.energy(energy_j), budget)


def medium_of(power_w):
    """A trace of one sample a millisecond, whose first sample begins at 0, by power above idle."""
    centre_ns = np.arange(power_w.size) * MILLI + MILLI // 2
    cells = Cells.of(PowerTrace.of(centre_ns, (power_w + IDLE_W) / 5.0, np.full(power_w.size, 5.0)))
    idle = SimpleNamespace(power=Quantity(IDLE_W, 0.0, "W"), standard_u_w=1e-4, noise_w_root_s=1e-4)
    return MediumTrace(cells, SAME_CLOCK, idle, lambda: marginal(1.0), True)


def one_write(syncs_ms=(), *, bytes_each=(0, 0, 50, 0, 0, 0, 0, 0, 0, 0)):
    """A second in which the medium is busy from 0.2 to 0.25 s, in its tail to 0.6 s, and idle after that.

    The counters are read ten times; at the highest rate that they show its bytes take 0.05 s, or longer.
    """
    power_w = np.zeros(1000)
    power_w[200:250], power_w[250:600] = BUSY_W, TAIL_W
    counters = Counters(
        np.arange(11) * 100 * MILLI,
        np.concatenate([[0.0], np.cumsum(bytes_each)]),
        np.zeros(11),
        np.zeros(11),
    )
    starts, ends = (np.rint(np.array([sync_ms[at] for sync_ms in syncs_ms]) * MILLI) for at in (0, 1))
    syncs = Intervals.of(starts.astype(np.int64), ends.astype(np.int64)) if syncs_ms else None
    return SensedMedium.of(medium_of(power_w), np.arange(0, 1001, 10) * MILLI, 0, counters, syncs)


def test_the_mediums_energy_is_that_of_its_trace_in_every_window():
    drawn_j = one_write().drawn_j
    assert drawn_j[20:25] == pytest.approx(BUSY_W * 0.01) and drawn_j[30:60] == pytest.approx(TAIL_W * 0.01)
    assert drawn_j.sum() == pytest.approx(BUSY_W * 0.05 + TAIL_W * 0.35)
    assert drawn_j[60:] == pytest.approx(0.0, abs=1e-12)


def test_pauses_show_the_tails_power_and_writing_has_the_rest_within_a_bound():
    least_j, most_j = one_write().tail_range_j
    whole_j = BUSY_W * 0.05 + TAIL_W * 0.35
    assert most_j == pytest.approx(TAIL_W * 0.4, rel=1e-6), "while busy it may draw the tail's power, and no more"
    assert least_j == pytest.approx(TAIL_W * 0.2, rel=1e-6), "all that is within a sample of the writing may be writing"
    assert least_j <= TAIL_W * 0.35 <= most_j < whole_j


def test_a_medium_that_is_as_quick_as_seen_elsewhere_is_busy_for_less_of_a_sample():
    quick = one_write(bytes_each=(0, 0, 50, 0, 0, 0, 0, 0, 0, 100))
    least_j, most_j = quick.tail_range_j
    assert least_j == pytest.approx(TAIL_W * (0.05 + 0.05 + 0.2), rel=0.01), "in this sample, the next, and later"
    assert least_j <= TAIL_W * 0.35 <= most_j


def test_without_counters_the_tail_may_be_all_or_nothing():
    power_w = np.full(1000, TAIL_W)
    medium = SensedMedium.of(medium_of(power_w), np.arange(0, 1001, 10) * MILLI, 0, None, None)
    assert medium.tail_range_j == pytest.approx((0.0, TAIL_W))


def test_what_is_waited_for_is_the_syncs_and_a_sample_that_its_edge_cuts_is_a_bound():
    whole = one_write([(200, 250)])
    assert whole.waited_range_j == pytest.approx((BUSY_W * 0.05,) * 2)
    assert whole.tail_range_j[1] <= TAIL_W * 0.35 * (1 + 1e-9), "no energy is counted twice"
    cut = one_write([(200, 250.5)])
    assert cut.waited_range_j == pytest.approx((BUSY_W * 0.05, BUSY_W * 0.05 + TAIL_W * 0.001))


def test_parts_add_up_to_the_sensors_energy_and_hold_its_budget():
    medium = one_write([(200, 250)])
    budget = SensorBudget.of([marginal(0.19, gain=0.0019, offset=0.004)])
    parts = SensedParts.of(medium, budget)
    assert parts.waited.value + parts.write_back.value + parts.tail.value == pytest.approx(0.19)
    assert parts.alone.value == pytest.approx(parts.write_back.value + parts.tail.value)
    assert parts.alone.standard_u == pytest.approx(math.hypot(0.004, 0.01 * parts.alone.value))
    low_j, high_j = medium.tail_range_j
    bound_u_j = (high_j - low_j) / math.sqrt(12)
    assert parts.tail.standard_u == pytest.approx(math.hypot(0.004, bound_u_j, 0.01 * parts.tail.value))


def test_a_reference_that_both_sensors_have_in_common_does_not_set_their_scales_apart():
    board = marginal(10.0, {"reference": 0.1}, gain=0.1)
    same, other = marginal(2.0, {"reference": 0.02}, gain=0.02), marginal(2.0, {"another": 0.02}, gain=0.02)
    of_board, of_same, of_other = (SensorBudget.of([energy]) for energy in (board, same, other))
    assert of_board.apart_u(of_same) == pytest.approx(0.0, abs=1e-9)
    assert of_board.apart_u(of_other) == pytest.approx(0.01 * math.sqrt(2))
    assert sum_of_sensors(board, same).standard_u == pytest.approx(0.12)
    assert sum_of_sensors(board, other).standard_u == pytest.approx(math.hypot(0.1, 0.02))


RUN_S, EACH_J = 30.0, {"read": 45e-6, "update": 385e-6}
SSD = Medium(150e6, 0.0, 2.2, 0.5, 1.0, 4096.0, 0.3)
"""An engine writes again before its tail is over: it draws almost throughout, which one sensor cannot tell apart."""


def known_work():
    """One thread that reads and updates at random; its pages go to the medium so often."""
    rng = np.random.default_rng(3)
    count = round(RUN_S / 250e-6)
    kind = (np.repeat(rng.random(count // 500) < 0.5, 500) ^ (rng.random(count) < 0.2)).astype(np.uint8)
    length_s = np.where(kind == 1, 230e-6, 60e-6)
    finish_s = np.cumsum(length_s + rng.exponential(90e-6, count))
    kind, length_s, finish_s = (column[finish_s < RUN_S] for column in (kind, length_s, finish_s))
    begin_s, energy_j = RUN_STARTS_S + finish_s - length_s, np.array([*EACH_J.values()])[kind]
    grid_s = np.arange(RUN_STARTS_S, RUN_STARTS_S + RUN_S + 10.0, 1e-3)
    course = SSD.course(grid_s, np.clip((grid_s - RUN_STARTS_S) / RUN_S, 0.0, 1.0) * 40e6, np.zeros(0))
    powers = {"write_back": course.write_back_w, "tail": course.tail_w}
    true_j = {name: float(energy_j[kind == at].sum()) for at, name in enumerate(EACH_J)}
    true_j |= {name: float(power_w.sum()) * 1e-3 for name, power_w in powers.items()}
    medium = [Gridded(RUN_STARTS_S, 1e-3, power_w) for power_w in powers.values()]
    known = Known(
        RUN_STARTS_S, RUN_STARTS_S + RUN_S, RUN_STARTS_S + RUN_S + 8.0, tuple(EACH_J), kind, begin_s, length_s,
        np.zeros(kind.size, np.uint16), {}, False, (grid_s + 1e-3, course.written_bytes),
        [Steady(begin_s, begin_s + length_s, energy_j), *medium], true_j,
    )  # fmt: skip
    return known, medium


@pytest.fixture(scope="module", params=["board", "own"])
def work(request):
    """The run with a sensor in the medium's supply, and what its parts drew."""
    known, medium = known_work()
    of_board = request.param == "board"
    board = known if of_board else replace(known, pieces=known.pieces[:1])
    rng = np.random.default_rng(4)
    seen = watched(rng, KINDS[2], board).work
    end_s = known.settled_s + IDLE_S + 1.0
    placed = measured(rng, KINDS[2], [wander(rng, end_s + 1, 0.1, 1e-3), *medium], end_s, name="medium")
    energies = repeat_energy(placed, phases(known), 1)
    sensed = MediumTrace(placed.cells, placed.board_to_meter, energies.idle, lambda: energies.marginal, of_board)
    return replace(seen, medium=sensed), known.true_j


def test_foreground_is_told_beside_a_tail_that_goes_on_almost_throughout(work):
    seen, true_j = work
    attribution = attribute_runs([seen])[0]
    for name, share in {**attribution.operations, **attribution.activities}.items():
        assert abs(share.value - true_j[name]) <= 2.5 * share.standard_u, name
    assert not attribution.foreground.reason
    if seen.medium.of_board:
        alone = attribute_runs([replace(seen, medium=None)])[0].foreground
        assert alone.u > 1.5 * attribution.foreground.u, "one sensor cannot tell it as well"


def test_parts_add_up_to_the_whole_and_the_mediums_energy_is_the_sensors(work):
    seen, true_j = work
    attribution = attribute_runs([seen])[0]
    assert abs(attribution.whole.value - sum(true_j.values())) <= 3 * attribution.whole.standard_u
    parts = [attribution.foreground, *attribution.activities.values()]
    assert sum(part.value for part in parts) == pytest.approx(attribution.whole.value, rel=1e-3)
    assert attribution.alone.value == pytest.approx(seen.medium.marginal().energy.value, rel=1e-9)
    assert attribution.alone.standard_u == pytest.approx(seen.medium.marginal().budget.standard_u, rel=1e-6)
    drawn_j = sum(part_j.sum() for part_j in attribution.course.energy_j.values())
    assert drawn_j == pytest.approx(attribution.course.measured_j.sum(), rel=1e-3)


@pytest.mark.slow
def test_repeats_of_which_one_lacks_the_sensor_are_attributed_without_it(work):
    seen, _ = work
    assert [attribution.alone for attribution in attribute_runs([seen, replace(seen, medium=None)])] == [
        None,
        None,
    ]
    both = attribute_runs([seen, seen])
    assert all(attribution.alone for attribution in both)
    reasons = [{name: share.reason for name, share in attribution.activities.items()} for attribution in both]
    assert reasons[0] == reasons[1], "told in all repeats or in none"
