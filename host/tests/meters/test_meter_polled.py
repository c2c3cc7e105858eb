"""Counters and sensors of the operating system behind the meter interface: exact over late polls, honest on cost."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import BadInput, MeterFault
from opjoule.base.notices import NoticeKind
from opjoule.energy.error_bounds import SQRT3, Shunt
from opjoule.energy.trace.journal import read_trace
from opjoule.meters.hwmon import HwmonSource
from opjoule.meters.interface import GapEvent, Samples
from opjoule.meters.pmic import PmicSource
from opjoule.meters.polling import PolledMeter, Reading, Source
from opjoule.meters.rapl import RaplSource
from opjoule.meters.registry import open_meter

ROOT = Path(__file__).resolve().parents[3]
RANGE_UJ = 262_143_328_850


class FakeRapl:
    """A powercap tree in a directory, and the clock it is read with."""

    def __init__(self, root, start_uj=0):
        self.ns, self.uj, self.root = 0, float(start_uj), root
        for name, title in (
            ("intel-rapl:0", "package-0"),
            ("intel-rapl:0:0", "core"),
            ("intel-rapl-mmio:0", "package-0"),
        ):
            folder = root / name
            folder.mkdir(parents=True)
            (folder / "name").write_text(title + "\n")
            (folder / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
        self.draw(0, 0)

    def draw(self, watts, seconds):
        self.ns += round(seconds * 1e9)
        self.uj += watts * seconds * 1e6
        for folder in self.root.iterdir():
            (folder / "next").write_text(f"{int(self.uj) % (RANGE_UJ + 1)}\n")
            (folder / "next").replace(folder / "energy_uj")

    def meter(self):
        meter = PolledMeter(RaplSource(self.root, lambda: self.ns), lambda: self.ns)
        meter.open()
        meter.poll()
        return meter


def energy_j(events):
    """Joules of samples (each over one period) and of gaps with a known charge."""
    total = sum(float(np.sum(e.current_a * e.voltage_v)) * 0.01 for e in events if isinstance(e, Samples))
    return total + sum(e.gap.charge_c for e in events if isinstance(e, GapEvent))


def test_rapl_counts_the_package_once(tmp_path):
    rapl = FakeRapl(tmp_path)
    meter = rapl.meter()
    for _ in range(100):
        rapl.draw(12.5, 0.01)
        meter.poll()
    assert energy_j(meter._events) == pytest.approx(12.5, rel=1e-6)
    assert [sensor.model for sensor in meter.open().sensors] == ["package-0"]


def test_rapl_goes_on_where_its_counter_wraps(tmp_path):
    rapl = FakeRapl(tmp_path, RANGE_UJ - 300_000)
    meter = rapl.meter()
    for _ in range(100):
        rapl.draw(10, 0.01)
        meter.poll()
    assert energy_j(meter._events) == pytest.approx(10, rel=1e-4)


def test_a_late_poll_loses_resolution_but_no_energy(tmp_path):
    rapl = FakeRapl(tmp_path)
    meter = rapl.meter()
    for seconds, watts in ((0.01, 5), (0.01, 5), (0.073, 30), (0.01, 5), (0.004, 80), (0.01, 5)):
        rapl.draw(watts, seconds)
        meter.poll()
    assert energy_j(meter._events) == pytest.approx(0.033 * 5 + 0.073 * 30 + 0.004 * 80, rel=1e-3)
    (gap,) = [event.gap for event in meter._events if isinstance(event, GapEvent)]
    assert (gap.start_meter_ns, gap.duration_ns, gap.lost_samples) == (30_000_000, 60_000_000, 6)
    assert gap.charge_c == pytest.approx(0.06 * 30)
    assert meter.losses.recovered_samples == meter.losses.lost_samples == 6
    assert meter.losses.link["late_polls"] == 1


def test_uneven_polls_move_no_energy_between_periods(tmp_path):
    rapl = FakeRapl(tmp_path)
    meter = rapl.meter()
    steps = np.random.default_rng(5).uniform(0.002, 0.018, 200)
    for number, seconds in enumerate(steps):
        rapl.draw(5 + number % 40, float(seconds))
        meter.poll()
    samples = [event for event in meter._events if isinstance(event, Samples)]
    assert set(np.diff([int(sample.meter_ns[0]) for sample in samples])) == {10_000_000}
    whole_s = int(steps.sum() / 0.01) * 0.01
    truth = np.interp(whole_s, np.cumsum(steps), np.cumsum(steps * (5 + np.arange(200) % 40)))
    assert energy_j(meter._events) == pytest.approx(truth, rel=1e-4)


def test_rapl_says_why_there_is_none(tmp_path):
    with pytest.raises(MeterFault, match="virtual machine"):
        open_meter(f"rapl:{tmp_path}").open()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_rapl_without_the_right_to_read_says_what_to_do(tmp_path):
    FakeRapl(tmp_path)
    for path in tmp_path.glob("*/energy_uj"):
        path.chmod(0)
    with pytest.raises(MeterFault, match="sudo chmod"):
        open_meter(f"rapl:{tmp_path}").open()


def test_rapl_refused_by_the_kernel_says_what_to_do(tmp_path, monkeypatch):
    FakeRapl(tmp_path)

    def refuse(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    whole = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda self, *a, **k: (refuse if self.name == "energy_uj" else whole)(self))
    with pytest.raises(MeterFault, match="sudo chmod"):
        open_meter(f"rapl:{tmp_path}").open()


@pytest.mark.slow
def test_record_takes_rapl_and_states_its_cost(tmp_path):
    tree, out = tmp_path / "sys", tmp_path / "record"
    rapl = FakeRapl(tree)
    stop = threading.Event()

    def run():
        while not stop.wait(0.002):
            rapl.draw(20, 0.002)

    drawing = threading.Thread(target=run, daemon=True)
    drawing.start()
    try:
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "opjoule.cli.start",
                "record",
                "--meter",
                f"rapl:{tree}",
                "--out",
                out,
                "--seconds",
                "1",
            ],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
        )
    finally:
        stop.set()
        drawing.join(60)
    assert ended.returncode == 0, ended.stderr
    run_json = json.loads((out / "run.json").read_text())
    assert any("its own cost" in note for note in run_json["found"]["meter"]["notes"])
    assert run_json["capture"]["losses"]["link"]["poll_cpu_us"] > 0
    assert run_json["sensor"]["gain_errors_max"] == {"power": 0.05}
    assert len(read_trace(out)) > 10


def hwmon_tree(root, *, chips=("ina219",)):
    for number, chip in enumerate(chips):
        folder = root / f"hwmon{number}"
        folder.mkdir(parents=True)
        for name, value in (
            ("name", chip),
            ("curr1_input", "612"),
            ("in1_input", "5096"),
            ("in0_input", "61"),
        ):
            (folder / name).write_text(f"{value}\n")
    return root


def iio_tree(root):
    folder = root / "iio:device0"
    folder.mkdir(parents=True)
    files = {
        "name": "ina226",
        "in_current3_raw": 1224,
        "in_current3_scale": 0.5,
        "in_voltage1_raw": 4077,
        "in_voltage1_scale": 1.25,
    }
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")
    return root


def test_hwmon_reads_the_bus_not_the_shunt(tmp_path):
    source = HwmonSource("", hwmon_tree(tmp_path / "h", chips=("cpu_thermal", "ina219")), tmp_path / "none")
    assert source.open().sensors[0].model == "ina219"
    reading = source.read()
    assert (reading.current_a, reading.voltage_v) == pytest.approx((0.612, 5.096))


def test_hwmon_s_shunt_is_the_driver_s_and_its_range_ends_with_it(tmp_path):
    """The kernel takes 10 milliohm where nobody told it, breakouts carry 100: currents read ten times too high."""
    root = hwmon_tree(tmp_path / "h")
    (root / "hwmon0/shunt_resistor").write_text("10000\n")
    source = HwmonSource("", root, tmp_path / "none")
    untold = source.error_bounds().shunt.origin
    [doubtful] = source.open().notices
    assert doubtful.kind is NoticeKind.SHUNT and "0.1 ohm (R100)" in doubtful.line and "10 times" in doubtful.line
    assert source.error_bounds().shunt.ohm == 0.01
    assert "driver" in source.error_bounds().shunt.origin != untold
    assert source.error_bounds().current_max_a == pytest.approx(32.0)
    (root / "hwmon0/shunt_resistor").write_text("100000\n")
    assert not source.open().notices
    assert not source.read().clipped
    (root / "hwmon0/curr1_input").write_text("3200\n")
    assert source.read().clipped


def test_hwmon_s_current_is_corrected_where_the_driver_was_told_another_shunt(tmp_path):
    root = hwmon_tree(tmp_path / "h")
    (root / "hwmon0/shunt_resistor").write_text("10000\n")
    source = HwmonSource("", root, tmp_path / "none", shunt=Shunt(0.1, 0.01, "shunt= in rig.toml"))
    assert not source.open().notices
    assert source.read().current_a == pytest.approx(0.0612)
    bounds = source.error_bounds()
    assert (bounds.shunt.ohm, bounds.current_max_a) == (0.1, pytest.approx(3.2))


@pytest.mark.parametrize(("chip", "end_a"), [("ina3221", 1.638), ("ina228", 1.6384)])
def test_hwmon_s_current_is_corrected_where_the_driver_has_another_file_for_its_shunt(tmp_path, chip, end_a):
    """ina3221 has a file per channel, ina238.c (INA228, INA237, INA238) takes the device tree's value."""
    root = hwmon_tree(tmp_path / "h", chips=(chip,))
    if chip == "ina3221":
        (root / "hwmon0/shunt1_resistor").write_text("10000\n")
    else:
        (root / "hwmon0/device/of_node").mkdir(parents=True)
        (root / "hwmon0/device/of_node/shunt-resistor").write_bytes((10_000).to_bytes(4, "big"))
    source = HwmonSource("", root, tmp_path / "none", shunt=Shunt(0.1, 0.01, "shunt= in rig.toml"))
    source.open()
    assert source.read().current_a == pytest.approx(0.0612)
    assert source.error_bounds().current_max_a == pytest.approx(end_a)
    (root / "hwmon0/curr1_input").write_text(f"{end_a * 1e4:.0f}\n")
    assert source.read().clipped


def test_a_stated_shunt_is_refused_where_the_driver_s_own_is_not_known(tmp_path):
    root = hwmon_tree(tmp_path / "h", chips=("ina228",))
    with pytest.raises(MeterFault, match=r"ina228 .* <100000>"):
        HwmonSource("", root, tmp_path / "none", shunt=Shunt(0.1)).open()
    [doubtful] = HwmonSource("", root, tmp_path / "none").open().notices
    assert doubtful.kind is NoticeKind.SHUNT and "shunt-resistor" in doubtful.remedy


def test_a_power_z_s_voltage_is_in0_and_its_direction_does_not_matter(tmp_path):
    """in1 is a CC pin (Linux, drivers/hwmon/powerz.c)."""
    root = hwmon_tree(tmp_path / "h", chips=("powerz",))
    for name, value in (("in0_input", 5096), ("in1_input", 410), ("curr1_input", -612)):
        (root / "hwmon0" / name).write_text(f"{value}\n")
    source = HwmonSource("", root, tmp_path / "none")
    assert [sensor.model for sensor in source.open().sensors] == ["powerz"]
    reading = source.read()
    assert (reading.current_a, reading.voltage_v) == pytest.approx((0.612, 5.096))
    assert source.error_bounds().shunt is None


def test_iio_uses_the_drivers_scale(tmp_path):
    source = HwmonSource("ina226", tmp_path / "none", iio_tree(tmp_path / "i"))
    source.open()
    reading = source.read()
    assert (reading.current_a, reading.voltage_v) == pytest.approx((0.612, 5.09625))


def test_of_several_sensors_one_must_be_named(tmp_path):
    root = hwmon_tree(tmp_path, chips=("ina219", "ina226"))
    with pytest.raises(BadInput, match="hwmon:hwmon0"):
        HwmonSource("", root, tmp_path / "none").open()
    assert HwmonSource("hwmon1", root, tmp_path / "none").open().sensors[0].model == "ina226"


def test_without_a_sensor_the_driver_is_named(tmp_path):
    with pytest.raises(MeterFault, match="modprobe ina2xx"):
        HwmonSource("", tmp_path, tmp_path).open()


def test_a_sensor_that_stops_answering_ends_the_run_with_its_reason(tmp_path):
    root = hwmon_tree(tmp_path)
    meter = PolledMeter(HwmonSource("", root, tmp_path / "none"))
    meter.open()
    meter.start()
    (root / "hwmon0" / "curr1_input").unlink()

    def read_on():
        while True:
            meter.read(1.0)

    try:
        with pytest.raises(MeterFault, match="check its wiring"):
            read_on()
    finally:
        meter.close()


def test_late_polls_of_a_momentary_value_are_a_gap_without_charge():
    class Momentary(Source):
        period_s, mean_since_last = 0.02, False
        open = error_bounds = None

        def read(self):
            return Reading(1.0, 5.0)

    now = [0]
    meter = PolledMeter(Momentary(), lambda: now[0])
    for at_ms in (0, 20, 100, 121):
        now[0] = at_ms * 1_000_000
        meter.poll()
    (gap,) = [event.gap for event in meter._events if isinstance(event, GapEvent)]
    assert (gap.lost_samples, gap.charge_c) == (3, None)
    assert meter.losses.lost_samples == 3
    assert [int(e.meter_ns[0]) for e in meter._events if isinstance(e, Samples)] == [
        0,
        20_000_000,
        100_000_000,
        121_000_000,
    ]


@pytest.mark.parametrize(
    ("chip", "update_interval", "window_ms"),
    [("ina219", None, 0), ("ina226", "35", 35), ("ina238", None, 50.496)],
)
def test_a_chip_s_own_mean_lies_on_average_one_window_before_the_poll(tmp_path, chip, update_interval, window_ms):
    """It was completed up to one window before the poll, and its centre is half a window earlier."""
    root = hwmon_tree(tmp_path, chips=(chip,))
    if update_interval:
        (root / "hwmon0/update_interval").write_text(f"{update_interval}\n")
    now = [0]
    meter = PolledMeter(HwmonSource("", root, tmp_path / "none"), lambda: now[0])
    notes = meter.open().notes
    assert any("instantaneous" in note for note in notes) == (not window_ms)
    for at_ms in (100, 120, 220):
        now[0] = at_ms * 1_000_000
        meter.poll()
    stamps = [int(event.meter_ns[0]) for event in meter._events if isinstance(event, Samples)]
    assert stamps == pytest.approx([at_ms * 1e6 - window_ms * 1e6 for at_ms in (100, 120, 220)])
    (gap,) = [event.gap for event in meter._events if isinstance(event, GapEvent)]
    assert stamps[1] < gap.start_meter_ns < gap.end_meter_ns < stamps[2]
    meter.clock_exchange()
    assert window_ms * 1e6 <= meter._events[-1].round_trip_ns < window_ms * 1e6 + 1e9
    assert meter.error_bounds().stamp_u_ns == pytest.approx(window_ms * 1e6 / 2 / SQRT3)


def test_iio_states_the_length_of_its_mean_as_a_rate(tmp_path):
    """ina2xx-adc takes the mean of 4 pairs of 1.1 ms of an INA226."""
    root = iio_tree(tmp_path / "i")
    (root / "iio:device0/in_sampling_frequency").write_text("113\n")
    source = HwmonSource("ina226", tmp_path / "none", root)
    source.open()
    assert source.window_s == pytest.approx(8.85e-3, rel=1e-3)


PMIC = """\
 3V7_WL_SW_A current(0)=0.10000000A
 VDD_CORE_A current(7)=2.00000000A
 3V7_WL_SW_V volt(8)=3.70000000V
 VDD_CORE_V volt(15)=0.80000000V
 HDMI_V volt(22)=5.10000000V
 EXT5V_V volt(24)=5.00000000V
"""


def program(folder, text):
    path = folder / "vcgencmd"
    path.write_text(f"#!/bin/sh\n[ \"$1\" = pmic_read_adc ] && cat <<'X'\n{text}X\n")
    path.chmod(0o755)
    return str(path)


def test_the_pmic_is_summed_over_rails_with_both_readings(tmp_path):
    source = PmicSource(program(tmp_path, PMIC))
    assert [sensor.model for sensor in source.open().sensors] == ["3V7_WL_SW", "VDD_CORE"]
    reading = source.read()
    assert reading.voltage_v == 5.0
    assert reading.current_a * reading.voltage_v == pytest.approx(0.37 + 1.6)


def test_a_computer_without_a_pmic_is_reported(tmp_path):
    with pytest.raises(MeterFault, match="Raspberry Pi 5"):
        PmicSource(program(tmp_path, "error=1\n")).open()
    with pytest.raises(MeterFault, match="Raspberry Pi 5"):
        PmicSource(str(tmp_path / "absent")).open()
