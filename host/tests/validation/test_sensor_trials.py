"""Some of the drawn records of host/validation/sensor_trials.py."""

import pytest
from sensor_trials import drawn, run

pytestmark = pytest.mark.rig


@pytest.mark.parametrize("seed", [1, 3, 13, 33])
def test_stamps_counts_and_gaps_are_right_whatever_the_chip_does_at_a_change_of_mode(seed):
    outcome = run(drawn(seed))
    assert outcome.beyond() == []
    assert abs(outcome.deviation) <= 1
