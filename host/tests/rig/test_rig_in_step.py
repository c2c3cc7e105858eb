"""A load in step with the conversions is measured wrong where the current is seen half of the time, and a notice says
so; shunt mode measures it right."""

from dataclasses import replace

import pytest
from opjoule.base.notices import NoticeKind
from opjoule.energy.unseen_current import in_step_notices
from opjoule.meters.chips import SensorSettings
from opjoule.meters.messages import Mode
from rig_session import PERFECT_SENSOR, record

pytestmark = pytest.mark.rig
END_S = 7.0
EDGES_S = [0.5, 5.5]


def square(hz):
    return [(k / (2 * hz), 1.1 if k % 2 else 0.3) for k in range(int(2 * hz * END_S))]


@pytest.mark.parametrize(
    ("mode", "seen", "hz", "noted"),
    [(Mode.PAIRS, 0.5, 940, True), (Mode.PAIRS, 0.5, 100, False), (Mode.SHUNTS, 1.0, 940, False)],
)
def test_a_load_in_step_is_noted_where_it_is_measured_wrong(tmp_path, mode, seen, hz, noted):
    settings = SensorSettings(mode=mode)
    rig = record(tmp_path, square(hz), EDGES_S, "--sensor-clock-error-ppm", "-400", end_s=END_S, settings=settings)
    sensor = replace(PERFECT_SENSOR, seen_fraction=seen)
    ((result, true_j),) = rig.interval_energies(sensor)
    notices = in_step_notices(rig.cells, sensor, [(int(rig.edges_ns[0]), int(rig.edges_ns[1]))])
    assert [notice.kind for notice in notices] == [NoticeKind.IN_STEP] * noted
    assert (abs(float(result.energy) / true_j - 1) > 0.01) == noted
