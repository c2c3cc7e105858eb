"""Two and three sensors on the simulated bus, each with a load of its own, recorded by the host together."""

import numpy as np
import pytest
from opjoule.base.errors import BadInput
from opjoule.energy.cells import Cells
from opjoule.energy.trace.journal import further_numbers, read_trace, to_parquet
from opjoule.meters.registry import open_meter
from rig_session import rig_sim, write_profile

pytestmark = pytest.mark.rig

SECONDS = 6.0
LOADS = ([(0.0, 0.6), (2.0, 1.1), (4.0, 0.5)], [(0.0, 0.1), (3.0, 0.4)], [(0.0, 0.2), (1.0, 0.05)])


def record(folder, meter_options, count):
    """Records `count` INA219 at 0x40, 0x41, ...; gives summary, bounds of the further ones and the truth."""
    options = []
    for number, rows in enumerate(LOADS[:count]):
        path = folder / f"load-{number}.csv"
        write_profile(path, rows, 5.0, SECONDS)
        options += ["--sensor", f"ina219@{0x40 + number:#x}={path}"]
    with rig_sim(folder, "--profile", str(folder / "load-0.csv"), *options) as rig:
        meter = rig.meter(meter_options)
        summary = rig.capture(meter)
        return summary, meter.further_error_bounds(), rig.played()


def energy_j(folder, number):
    cells = Cells.of(read_trace(folder, number))
    return float(cells.power.between(cells.start_ns, cells.end_ns))


@pytest.mark.parametrize("count, per_s", [(2, 469.9), (3, 234.96)])
def test_each_sensor_has_a_trace_of_its_own_with_its_own_energy(tmp_path, count, per_s):
    places = "+".join(str(place) for place in range(count))
    summary, bounds, truth = record(tmp_path, f",sensors={places}", count)
    assert summary.losses.lost_samples == 0
    assert summary.losses.faults == {}
    assert sorted(bounds) == sorted(summary.further_samples) == further_numbers(tmp_path) == [*range(1, count)]
    for number, sensor in enumerate(truth["sensors"]):
        assert sensor["shunt"]["missed"] == sensor["shunt"]["read_twice"] == 0
        period_s = np.median(np.diff(read_trace(tmp_path, number).meter_ns)) * 1e-9
        assert 1 / period_s == pytest.approx(per_s, rel=2e-3)
        # Steps of the load at the trace's ends are seen to half of a sample at best.
        assert energy_j(tmp_path, number) == pytest.approx(sensor["total_j"], rel=2 * period_s / SECONDS)


def test_the_first_named_sensor_is_that_of_the_board(tmp_path):
    _, bounds, truth = record(tmp_path, ",sensors=1+0", 2)
    assert list(bounds) == [1]
    assert energy_j(tmp_path, 0) == pytest.approx(truth["sensors"][1]["total_j"], rel=2e-3)
    assert energy_j(tmp_path, 1) == pytest.approx(truth["sensors"][0]["total_j"], rel=2e-3)


def test_traces_become_parquet_and_read_the_same(tmp_path):
    record(tmp_path, ",sensors=0+1", 2)
    before = [read_trace(tmp_path, number).current_a for number in (0, 1)]
    made = {path.name for path in to_parquet(tmp_path)}
    assert {"power.parquet", "power-1.parquet", "edges.parquet"} <= made
    for number, current_a in enumerate(before):
        np.testing.assert_array_equal(read_trace(tmp_path, number).current_a, current_a)


def test_one_sensor_is_recorded_where_nothing_else_is_asked_for(tmp_path):
    summary, bounds, truth = record(tmp_path, "", 2)
    assert bounds == summary.further_samples == {}
    assert further_numbers(tmp_path) == []
    assert truth["sensors"][1]["shunt"]["reads"] == 0


@pytest.mark.parametrize("text", ["0+0", "a", "0+", "-1"])
def test_a_list_of_sensors_that_is_none_is_refused(text):
    with pytest.raises(BadInput, match="sensors="):
        open_meter(f"serial:/dev/null,sensors={text}")


@pytest.mark.parametrize(
    "chip, options, per_s",
    [
        ("ina226", "adc_code=4", 909.1),
        ("ina226", "adc_code=12", 227.3),  # 4 averages
        ("ina226", "mode=pairs,adc_code=43", 3.32),  # 256 averages
        ("ina219", "adc=mean4", 469.9),
    ],
)
def test_what_is_not_asked_for_is_left_to_the_chip(tmp_path, chip, options, per_s):
    """The INA226 has one range; the others' default would be refused."""
    write_profile(tmp_path / "profile.csv", [(0.0, 0.5)], 5.0, 2.0)
    inputs = ["--profile", str(tmp_path / "profile.csv"), "--sensor", chip]
    with rig_sim(tmp_path, *inputs) as rig:
        rig.capture(rig.meter(f",{options}"))
    period_s = np.median(np.diff(read_trace(tmp_path).meter_ns)) * 1e-9
    assert 1 / period_s == pytest.approx(per_s, rel=0.01)
