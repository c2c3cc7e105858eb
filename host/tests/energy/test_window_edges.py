"""What the samples at a window's two edges leave open: short phases, steps of the load at a mark, SIMULATED."""

import numpy as np
import pytest
from opjoule.energy.cells import Cells
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import alignment_u_j
from phase_coverage import trials  # path set above

PERIOD_NS = 500_000
VOLTS = 5.0


def recorded(start: float, end: float, inside_a: float, outside_a: float = 0.5, samples: int = 40) -> Cells:
    """Conversions that integrate: one current between two places [samples], another one outside."""
    places = np.arange(samples, dtype=np.float64)
    part = np.clip(np.minimum(places + 1, end) - np.maximum(places, start), 0.0, 1.0)
    meter_ns = (places * PERIOD_NS).astype(np.int64) + PERIOD_NS // 2
    current_a = outside_a + part * (inside_a - outside_a)
    return Cells.of(PowerTrace.of(meter_ns, current_a, np.full(samples, VOLTS)))


def error_and_u_j(
    start: float, end: float, inside_a: float, u_ns: float = 0.0, late: float = 0.0
) -> tuple[float, float]:
    """Error of the energy between two marks at which the load changes, the window `late` samples after them."""
    cells = recorded(start, end, inside_a)
    edges_ns = [round((edge + late) * PERIOD_NS) for edge in (start, end)]
    truth_j = inside_a * VOLTS * (end - start) * PERIOD_NS * 1e-9
    return float(cells.power.between(*edges_ns)) - truth_j, alignment_u_j(cells, *edges_ns, u_ns, 0.0)


@pytest.mark.parametrize("inside_a", [0.1, 1.2])
@pytest.mark.parametrize(("start", "end"), [(10.5, 20.5), (10.2, 14.7), (7.9, 31.1), (10.4, 12.6)])
def test_a_phase_with_a_power_of_its_own_lacks_something_at_both_ends_and_the_interval_holds_it(start, end, inside_a):
    """Shared out evenly, both cut samples err to the same side; their interval holds the sum and little more."""
    error_j, u_j = error_and_u_j(start, end, inside_a)
    assert error_j * (inside_a - 0.5) < 0
    assert abs(error_j) <= 2 * u_j <= 1.2 * abs(error_j)


@pytest.mark.parametrize(("start", "end"), [(10.3, 10.6), (10.6, 11.3)])
def test_a_phase_without_a_whole_sample_of_its_own_may_have_drawn_all_of_what_stands_out(start, end):
    error_j, u_j = error_and_u_j(start, end, 1.2)
    assert abs(error_j) <= 2 * u_j <= 1.2 * abs(error_j)


@pytest.mark.parametrize("late", [-0.2, -0.1, 0.1, 0.2])
def test_a_window_that_is_misplaced_within_its_cut_samples_is_held(late):
    """The map is off by two of its standard uncertainties; the samples that are cut hide what that costs."""
    error_j, u_j = error_and_u_j(10.5, 20.3, 1.2, u_ns=0.1 * PERIOD_NS, late=late)
    assert abs(error_j) <= 2 * u_j


def test_steps_to_opposite_sides_do_not_add_up():
    """From low over middle to high: one end has too much, the other too little."""
    places = np.arange(40)
    stairs_a = np.select([places < 10, places == 10, places < 20, places == 20], [0.2, 0.4, 0.6, 0.8], 1.0)
    meter_ns = (places * PERIOD_NS).astype(np.int64) + PERIOD_NS // 2
    cells = Cells.of(PowerTrace.of(meter_ns, stairs_a, np.full(40, VOLTS)))
    one_end_j = 0.25 * 0.4 * VOLTS * PERIOD_NS * 1e-9
    found_j = alignment_u_j(cells, round(10.5 * PERIOD_NS), round(20.5 * PERIOD_NS), 0.0, 0.0)
    assert found_j == pytest.approx(one_end_j / np.sqrt(3))


@pytest.mark.parametrize("pairs", [False, True])
def test_the_energy_of_a_marked_phase_holds_the_truth(pairs):
    """Phases of 5 to 500 ms, the map off by what it says: 384 figures a mode."""
    results = [
        one
        for map_u_s in (2e-6, 20e-6)
        for n in range(6)
        for one in trials(1 + 1000 * n, pairs=pairs, own_power=True, map_u_s=map_u_s)
    ]
    assert sum(one.held for one in results) >= 0.94 * len(results)
    assert np.median([one.relative_u for one in results]) < (0.02 if pairs else 0.005)
