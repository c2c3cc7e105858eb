"""What a sensor reads at a steady load: its mean with an honest uncertainty, or why a point of it cannot be trusted."""

import numpy as np
import pytest
from opjoule.energy.calibration.fitting import CalibrationFault
from opjoule.energy.calibration.means import mean_reading
from opjoule.energy.cells import Cells
from opjoule.energy.trace.power_trace import PowerTrace
from rig_session import PERFECT_SENSOR

PERIOD_NS = 532_000
SECOND_NS = 1_000_000_000


def cells(current_a):
    """Two seconds at 5 V."""
    stamps = np.arange(2 * SECOND_NS // PERIOD_NS, dtype=np.int64) * PERIOD_NS
    values = np.broadcast_to(current_a, stamps.shape).astype(np.float64)
    return Cells.of(PowerTrace(stamps, values, np.full(stamps.shape, 5.0)))


def noisy(level_a, noise_a, seed=1):
    return level_a + noise_a * np.random.default_rng(seed).normal(size=2 * SECOND_NS // PERIOD_NS)


def test_the_mean_of_a_steady_load_is_within_what_it_is_said_to_be_uncertain_by():
    read = mean_reading(cells(noisy(0.5, 1e-3)), SECOND_NS // 4, 7 * SECOND_NS // 4, PERFECT_SENSOR)
    assert abs(read.current_a - 0.5) < 3 * read.current_u_a < 6e-4 and read.voltage_v == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("current_a", "start_ns", "end_ns", "words"),
    [
        (0.5, -SECOND_NS, SECOND_NS, "outside"),
        (0.5, SECOND_NS, 3 * SECOND_NS, "outside"),
        (0.5, SECOND_NS, SECOND_NS, "outside"),
        (0.5, SECOND_NS, SECOND_NS + 4 * PERIOD_NS, "too few"),
        (np.linspace(0.5, 0.6, 2 * SECOND_NS // PERIOD_NS), SECOND_NS // 4, SECOND_NS, "load changed"),
    ],
    ids=["before the trace", "after it", "without length", "too short", "a load that moves"],
)
def test_a_stretch_that_tells_nothing_is_refused_with_the_figure_it_would_have_been(current_a, start_ns, end_ns, words):
    with pytest.raises(CalibrationFault, match=words):
        mean_reading(cells(current_a), start_ns, end_ns, PERFECT_SENSOR)
