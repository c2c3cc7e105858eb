"""Two media 3 % apart are told apart with five runs of each, whatever their common sensor gets wrong. SIMULATED."""

import pytest
from media_trials import SENSORS, trial


@pytest.mark.parametrize("sensor", SENSORS)
def test_two_media_that_differ_are_found_different_and_the_same_medium_twice_is_not(sensor):
    apart, same = trial(sensor, difference=0.03, spread=0.01, seed=3)
    assert apart.differ and apart.held
    assert not same.differ and same.held
    low, high = same.limits
    assert high - low < 0.06, "a gain that both share is not in it"
