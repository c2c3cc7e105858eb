"""Random measurements through the real firmware: stated intervals hold the truth as often as they say. SIMULATED.

The first 20 of the 400 of host/validation/coverage.py; see there. Judged by the r.m.s. of error over standard
uncertainty: 1 +- 0.16 for twenty right ones. Seeds are fixed and so are the recordings, and with them the outcome.
"""

import os
import sys
from pathlib import Path

import pytest

VALIDATION = Path(__file__).resolve().parents[2] / "validation"
sys.path[:0] = [str(VALIDATION)]

from coverage import QUANTITIES, measure_all, rms_error, scaled_errors  # noqa: E402  # path set above

pytestmark = pytest.mark.rig

COUNT = 20
MISSED_MAX = 5
"""Most misses of 20; with 95 % in each interval more than that happens three times in 10,000."""
RMS_MAX = 1.45
RMS_MIN = 0.45
"""Below it an interval is twice as wide as it has to be."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    journal = tmp_path_factory.mktemp("coverage") / "journal.jsonl"
    every = measure_all(journal, range(1, COUNT + 1), min(2, os.cpu_count() or 1))
    assert [one for one in every if "refused" in one] == []
    return every


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_intervals_of_a_sensor_as_delivered_hold_the_truth_and_are_no_wider_than_they_must_be(trials, quantity):
    assert RMS_MIN < rms_error(trials, "delivered", quantity) < RMS_MAX


@pytest.mark.parametrize("view", ["delivered", "known"])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_most_intervals_hold_the_truth_also_without_gain_and_offset_to_hide_behind(trials, view, quantity):
    missed = [error for error in scaled_errors(trials, view, quantity) if abs(error) > 1]
    assert len(missed) <= MISSED_MAX, missed


def test_a_gain_part_without_the_shunt_s_tolerance_would_be_noticed(trials):
    """Its u is 0.58 of the right one; so the limits can tell."""
    assert rms_error(trials, "delivered", "run_energy_j") / 0.58 > RMS_MAX
