"""A sensor in the medium's supply: its energy is the sensor's, write-back and tail are bounds by the counters. SIMULATED."""

import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "validation"))

from known_engine import Timeline, trial  # path set above
from opjoule.attribution.activities import Intervals
from opjoule.attribution.attribute import attribute_runs
from opjoule.attribution.budgets import SensorBudget, together
from opjoule.attribution.counters import Counters
from opjoule.attribution.sensed_parts import SensedParts
from opjoule.attribution.storage import SensedMedium, StorageTrace
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import MarginalEnergy
from opjoule.energy.budget import PARTS, Budget
from opjoule.energy.cells import Cells
from opjoule.measurement import attributed as measured
from opjoule.trace.power_trace import PowerTrace
from opjoule.units import Measured

EXAMPLE = Path(__file__).resolve().parents[2] / "runs/example"
MILLI = 1_000_000
IDLE_W, BUSY_W, TAIL_W = 0.2, 1.0, 0.4
SAME_CLOCK = ClockMap("board", "meter", 0, 0, 1.0, 1e3, 1e-9, "truth", 0, 100)


def marginal(energy_j, shared=None, **parts):
    budget = Budget({**dict.fromkeys(PARTS, 0.0), **parts}, {}, shared or {})
    return MarginalEnergy(budget.energy(energy_j), budget)


def storage_of(power_w):
    """A trace of one sample a millisecond, whose first sample begins at 0, by power above idle."""
    centre_ns = np.arange(power_w.size) * MILLI + MILLI // 2
    cells = Cells.of(PowerTrace.of(centre_ns, (power_w + IDLE_W) / 5.0, np.full(power_w.size, 5.0)))
    idle = SimpleNamespace(power=Measured(IDLE_W, 0.0, "W"), standard_u_w=1e-4, noise_w_root_s=1e-4)
    return StorageTrace(cells, SAME_CLOCK, idle, lambda: marginal(1.0), True)


def one_write(syncs_ms=(), *, bytes_each=(0, 0, 50, 0, 0, 0, 0, 0, 0, 0)):
    """A second in which the medium is busy from 0.2 to 0.25 s, in its tail to 0.6 s, and idle after that.

    The counters are read ten times; at the highest rate that they show its bytes take 0.05 s, or longer.
    """
    power_w = np.zeros(1000)
    power_w[200:250], power_w[250:600] = BUSY_W, TAIL_W
    counters = Counters(np.arange(11) * 100 * MILLI, np.concatenate([[0.0], np.cumsum(bytes_each)]))
    starts, ends = (
        np.array(each, np.int64) for each in (zip(*syncs_ms, strict=True) if syncs_ms else ((), ()))
    )
    syncs = Intervals.of(starts * MILLI, ends * MILLI) if syncs_ms else None
    return SensedMedium.of(storage_of(power_w), np.arange(0, 1001, 10) * MILLI, 0, counters, syncs)


def test_the_mediums_energy_is_that_of_its_trace_in_every_window():
    drawn_j = one_write().drawn_j
    assert drawn_j[20:25] == pytest.approx(BUSY_W * 0.01) and drawn_j[30:60] == pytest.approx(TAIL_W * 0.01)
    assert drawn_j.sum() == pytest.approx(BUSY_W * 0.05 + TAIL_W * 0.35)
    assert drawn_j[60:] == pytest.approx(0.0, abs=1e-12)


def test_pauses_show_the_tails_power_and_writing_has_the_rest_within_a_bound():
    least_j, most_j = one_write().tail_range_j
    whole_j = BUSY_W * 0.05 + TAIL_W * 0.35
    assert most_j == pytest.approx(TAIL_W * 0.4, rel=1e-6), (
        "while busy it may draw the tail's power, and no more"
    )
    assert least_j == pytest.approx(TAIL_W * 0.2, rel=1e-6), (
        "all that is within a sample of the writing may be writing"
    )
    assert least_j <= TAIL_W * 0.35 <= most_j < whole_j


def test_a_medium_that_is_as_quick_as_seen_elsewhere_is_busy_for_less_of_a_sample():
    quick = one_write(bytes_each=(0, 0, 50, 0, 0, 0, 0, 0, 0, 1000))
    least_j, most_j = quick.tail_range_j
    assert least_j > one_write().tail_range_j[0] + 0.05 and least_j <= TAIL_W * 0.35 <= most_j


def test_without_counters_the_tail_may_be_all_or_nothing():
    power_w = np.full(1000, TAIL_W)
    found = SensedMedium.of(storage_of(power_w), np.arange(0, 1001, 10) * MILLI, 0, None, None)
    assert found.tail_range_j == pytest.approx((0.0, TAIL_W))


def test_what_is_waited_for_is_the_syncs_and_a_sample_that_its_edge_cuts_is_a_bound():
    whole = one_write([(200, 250)])
    assert whole.waited_range_j == pytest.approx((BUSY_W * 0.05,) * 2)
    assert whole.tail_range_j[1] <= TAIL_W * 0.35 * (1 + 1e-9), "no energy is counted twice"
    cut = one_write([(200, 250.5)])
    least_j, most_j = cut.waited_range_j
    assert least_j <= BUSY_W * 0.05 + TAIL_W * 0.0005 <= most_j and most_j - least_j < TAIL_W * 0.001


def test_parts_add_up_to_the_sensors_energy_and_hold_its_budget():
    medium = one_write([(200, 250)])
    budget = SensorBudget.of([marginal(0.19, gain=0.0019, offset=0.004)])
    parts = SensedParts.of(medium, budget)
    assert parts.waited.energy_j + parts.write_back.energy_j + parts.tail.energy_j == pytest.approx(0.19)
    assert parts.alone.energy_j == pytest.approx(parts.write_back.energy_j + parts.tail.energy_j)
    assert parts.alone.standard_u_j == pytest.approx(math.hypot(0.004, 0.01 * parts.alone.energy_j))
    low_j, high_j = medium.tail_range_j
    bound_u_j = (high_j - low_j) / math.sqrt(12)
    assert parts.tail.standard_u_j == pytest.approx(math.hypot(0.004, bound_u_j, 0.01 * parts.tail.energy_j))


def test_a_reference_that_both_sensors_have_in_common_does_not_set_their_scales_apart():
    board = marginal(10.0, {"reference": 0.1}, gain=0.1)
    same, other = marginal(2.0, {"reference": 0.02}, gain=0.02), marginal(2.0, {"another": 0.02}, gain=0.02)
    of_board, of_same, of_other = (SensorBudget.of([each]) for each in (board, same, other))
    assert of_board.apart_u(of_same) == pytest.approx(0.0, abs=1e-9)
    assert of_board.apart_u(of_other) == pytest.approx(0.01 * math.sqrt(2))
    assert together(board, same).standard_u_j == pytest.approx(0.12)
    assert together(board, other).standard_u_j == pytest.approx(math.hypot(0.1, 0.02))


@pytest.fixture(scope="module")
def timeline():
    return Timeline.read(EXAMPLE)


@pytest.fixture(scope="module", params=["board", "own"])
def made(request, timeline):
    return trial(timeline, 5, supply=request.param)


def test_parts_add_up_to_the_whole_and_the_mediums_energy_is_right(made):
    found, true_j = made.found, made.drawn.true_j
    assert found.whole.energy_j == pytest.approx(sum(true_j.values()), abs=3 * found.whole.standard_u_j)
    parts = [found.foreground, *found.activities.values()]
    assert sum(each.energy_j for each in parts) == pytest.approx(found.whole.energy_j, rel=2e-3)
    medium_j = true_j["write_back"] + true_j["tail"]
    assert found.alone.energy_j == pytest.approx(medium_j, abs=3 * found.alone.standard_u_j)
    assert found.alone.standard_u_j < 0.1 * medium_j
    course = found.course
    assert sum(course.energy_j.values()).sum() == pytest.approx(course.measured_j.sum(), rel=2e-2)


def test_what_is_caused_later_is_known_though_write_back_and_tail_are_not_told_apart(made):
    of_medium = {name: "the counters decide" for name in ("write_back", "tail")}
    activities = {
        name: replace(each, unidentified=of_medium.get(name, ""))
        for name, each in made.found.activities.items()
    }
    found = measured._later(replace(made.found, activities=activities))
    assert found.value == pytest.approx(sum(each.energy_j for each in activities.values()))


def test_repeats_of_which_one_lacks_the_sensor_are_attributed_without_it(timeline, monkeypatch):
    works = []
    monkeypatch.setattr(measured, "attribute_runs", lambda own: works.extend(own) or attribute_runs(own))
    assert trial(timeline, 5, supply="board").found.alone
    (work,) = works
    one, other = attribute_runs([work, replace(work, storage=None)])
    assert one.alone is None and other.alone is None
    both = attribute_runs([work, work])
    assert all(each.alone for each in both)
    assert both[0].activities["tail"].unidentified == both[1].activities["tail"].unidentified
