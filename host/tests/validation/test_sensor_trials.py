"""Some of the drawn records of host/validation/sensor_trials.py."""

import pytest
from sensor_trials import OUTAGES, drawn, run

pytestmark = pytest.mark.rig
SEEDS = {"none": 0, "sensor away": 6, "bus held": 3, "host away": 2, "reset": 4}


@pytest.mark.parametrize("outage", OUTAGES)
def test_stamps_counts_and_gaps_are_right_whatever_fails(outage):
    one = drawn(SEEDS[outage])
    assert one.outage == outage
    outcome = run(one)
    assert outcome.beyond() == []
    assert abs(outcome.deviation) <= 1


def test_what_the_buffers_do_not_hold_while_the_host_is_away_is_lost_and_counted():
    outcome = run(drawn(SEEDS["host away"]))
    assert outcome.counted == outcome.unread > 500
