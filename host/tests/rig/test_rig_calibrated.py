"""Through the firmware: a calibration against a reference, then a load that it has not seen. SIMULATED."""

import pytest
from calibrated_energy import trial  # path set above

pytestmark = pytest.mark.rig


@pytest.mark.parametrize("seed", [3, 8])
def test_a_calibrated_sensor_knows_the_energy_of_ten_seconds_far_better(seed):
    """The whole trial, with minutes for its points: host/validation/calibrated_energy.py.

    The load does not change within a few conversions. No calibration tells what this meter would miss of it then.
    """
    _, rows = trial(seed, point_s=10.0, kinds=("steady", "noisy", "ramp"))
    (_, _, delivered_u), *calibrated = rows
    assert len(calibrated) == 2
    for _, error, u in calibrated:
        assert abs(error) < 3e-3
        assert abs(error) < 1.5 * u  # k = 3
        assert u < delivered_u / 4  # points of 10 s leave the heat less well known than those of a minute
