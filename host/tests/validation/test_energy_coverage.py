"""The stated interval holds the truth for every kind of load and supply, SIMULATED; at length: host/validation."""

import numpy as np
import pytest
from energy_coverage import KINDS, trial  # path set above

TRIALS = 4


UNRESOLVED = {
    "bursts of 50 us to 1 ms": 3,
    "bursts of 20 to 100 us, 0.15 ohm": 8,
    "bursts of 20 to 100 us, 0.3 ohm": 16,
    "on and off at random each 20 us, 0.3 ohm": 16,
}
"""Loads that no conversion resolves, and how many times wider their intervals may be."""


@pytest.fixture(scope="module")
def trials():
    return {name: [one for n in range(TRIALS) for one in trial(kind, 40 + n)] for name, kind in KINDS.items()}


@pytest.mark.parametrize("calibrated", [False, True])
def test_intervals_hold_the_truth_in_about_95_of_100(trials, calibrated):
    """16 kinds, 4 trials, 3 quantities: 192 intervals, of which chance leaves out 13 at most."""
    held = [one.held for some in trials.values() for one in some if one.calibrated == calibrated]
    assert sum(held) >= len(held) - 13


def test_no_kind_of_load_is_left_out(trials):
    for name, some in trials.items():
        assert sum(one.held for one in some) >= len(some) - 5, name


def test_intervals_say_something(trials):
    """With gain and offset known, but for bursts that no conversion resolves: energy within 0.2, marginal 0.5 %."""
    for name, some in trials.items():
        for quantity, most in (("energy", 2e-3), ("marginal", 5e-3), ("idle power", 2e-3)):
            limit = UNRESOLVED.get(name, 1) * most
            widths = [one.stated.relative_u for one in some if one.calibrated and one.quantity == quantity]
            assert np.median(widths) < limit, (name, quantity)
