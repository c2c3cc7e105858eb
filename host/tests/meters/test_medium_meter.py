"""A second meter in the medium's supply: its samples come onto the board's meter's clock, as a further sensor."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import BadInput, MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.calibration.calibration_file import read_calibration
from opjoule.energy.error_bounds import SQRT3
from opjoule.energy.trace.journal import read_trace
from opjoule.energy.trace.power_trace import Gap
from opjoule.meters.interface import FaultEvent, GapEvent, Losses, Meter, MeterIdentity, Samples
from opjoule.meters.registry import EXCHANGES_LEAST, LiveClock, WithMediumMeter, open_meters
from software_usb import SoftwareFnirsi, SoftwareKm003c, Supply, plug_in
from with_usb_testers import GAIN, OFFSET_A

HOST = Path(__file__).resolve().parents[2]
PERIOD_NS = 10_000_000
KEEP = ("page_cache", "governor", "wifi", "bluetooth", "hdmi", "leds", "swap", "services")


class Scripted(Meter):
    """A meter whose clock runs at `rate` from `zero_ns` of the host's; a sample each 10 ms of its own."""

    def __init__(self, rate, zero_ns, current, kind="scripted", sensor=0):
        self.rate, self.zero_ns, self.current, self.kind, self.sensor = rate, zero_ns, current, kind, sensor
        self.extra, self._next_ns, self.closed = [], PERIOD_NS // 2, False

    def open(self):
        return MeterIdentity(self.kind, "here", self.kind.upper(), 10**9, serial_number="7")

    def start(self): ...
    def error_bounds(self):
        from opjoule.meters.km003c import km003c_sensor

        return km003c_sensor()

    losses = Losses(lost_samples=3, link={"packets": 5})

    def until(self, host_ns):
        """Events up to a moment of the host."""
        end_ns = (host_ns - self.zero_ns) * self.rate
        meter_ns = np.arange(self._next_ns, end_ns, PERIOD_NS, dtype=np.int64)
        self._next_ns += PERIOD_NS * meter_ns.size
        amperes = self.current(meter_ns / self.rate + self.zero_ns)
        far_ns = int(end_ns)
        self.pending = [Exchange(host_ns, far_ns, far_ns, host_ns), *self.extra]
        self.extra = []
        if meter_ns.size:
            self.pending.insert(0, Samples(self.sensor, meter_ns, amperes, np.full(meter_ns.size, 5.0)))

    def read(self, timeout_s):
        events, self.pending = self.pending, []
        return events

    stop = lambda self: self.read(0)  # noqa: E731

    def close(self):
        self.closed = True


def step(at_ns):
    return lambda host_ns: np.where(host_ns < at_ns, 0.2, 1.0)


@pytest.mark.parametrize("rate", [1.0, 1.004, 0.9925])
def test_a_step_lies_at_the_same_moment_on_both_traces_whatever_the_second_clock_does(rate):
    at_ns = 8_123_456_789
    board, medium = Scripted(0.9997, 1_000_000_000, step(at_ns)), Scripted(rate, 1_400_000_000, step(at_ns))
    both = WithMediumMeter(board, medium, 2e6)
    both.open()
    both.start()
    events = []
    for host_ns in range(1_500_000_000, 15_000_000_000, 200_000_000):
        board.until(host_ns)
        medium.until(host_ns)
        events += both.read(0.1)
    place = {}
    for number in (0, both.number):
        parts = [event for event in events if isinstance(event, Samples) and event.sensor == number]
        meter_ns = np.concatenate([part.meter_ns for part in parts])
        assert np.all(np.diff(meter_ns) > 0)
        place[number] = meter_ns[np.concatenate([part.current_a for part in parts]) < 0.5].max()
    assert both.number == 1 and abs(place[1] - place[0]) < 1.01 * PERIOD_NS
    assert len([event for event in events if isinstance(event, Exchange)]) == 68, "those of the board's meter alone"


def test_gaps_faults_and_losses_of_the_second_meter_bear_its_name_and_the_first_ones_clock():
    board, medium = (Scripted(1.0, zero_ns, step(0)) for zero_ns in (0, 500_000_000))
    both = WithMediumMeter(board, medium, 0)
    both.open()
    both.start()
    for host_ns in range(600_000_000, 2_600_000_000, 200_000_000):
        board.until(host_ns)
        medium.until(host_ns)
        both.read(0.1)
    medium.extra = [
        GapEvent(0, Gap(10_000_000, 30_000_000, 2, None, "lost")),
        FaultEvent("late", 1, 10_000_000),
        GapEvent(1, Gap(10_000_000, 30_000_000, 2, None, "a further sensor of it is not recorded")),
    ]
    board.until(2_600_000_000)
    medium.until(2_600_000_000)
    events = both.read(0.1)
    (gap,) = [event for event in events if isinstance(event, GapEvent)]
    (fault,) = [event for event in events if isinstance(event, FaultEvent)]
    assert (gap.sensor, gap.gap.start_meter_ns, gap.gap.end_meter_ns) == (1, 510_000_000, 530_000_000)
    assert (fault.name, fault.sensor, fault.meter_ns) == ("storage_late", 1, 510_000_000)
    assert both.losses.link == {"packets": 5, "storage_lost_samples": 3, "storage_packets": 5}


def test_nothing_is_placed_before_both_clocks_are_known_and_nothing_of_it_is_lost():
    board, medium = Scripted(1.0, 0, step(0)), Scripted(1.0, 0, step(0))
    both = WithMediumMeter(board, medium, 0)
    both.open()
    both.start()
    seen = []
    for turn in range(EXCHANGES_LEAST + 1):
        board.until(200_000_000 * (turn + 1))
        medium.until(200_000_000 * (turn + 1))
        seen.append(sum(e.meter_ns.size for e in both.read(0.1) if isinstance(e, Samples) and e.sensor))
    assert seen == [0] * (EXCHANGES_LEAST - 1) + [20 * EXCHANGES_LEAST, 20]


def test_a_line_through_one_moment_keeps_the_nominal_rate():
    clock = LiveClock()
    for _ in range(EXCHANGES_LEAST):
        clock.take(Exchange(100, 50, 50, 100))
    assert clock.from_host(clock.to_host(np.array([60], np.int64))).tolist() == [60]


def test_the_uncertainty_of_its_stamps_is_among_its_bounds():
    both = WithMediumMeter(Scripted(1, 0, step(0)), Scripted(1, 0, step(0), "other"), 60e6)
    identity = both.open()
    assert both.further_error_bounds()[1].stamp_u_ns == pytest.approx(30e6 / SQRT3)
    assert both.further_error_bounds()[1].sensor_id == "other-7" and "storage meter: OTHER" in identity.notes
    both._medium.error_bounds = lambda: replace(Scripted.error_bounds(both._medium), stamp_u_ns=40e6 / SQRT3)
    assert both.further_error_bounds()[1].stamp_u_ns == pytest.approx(50e6 / SQRT3)


def test_both_are_closed_if_one_does_not_open(monkeypatch):
    board = Scripted(1.0, 0, step(0))
    monkeypatch.setattr("opjoule.meters.registry.open_meter", lambda name, *_: board)
    plug_in(monkeypatch)
    from opjoule.meters.fnirsi import FnirsiMeter

    with pytest.raises(MeterFault, match=r"fnirsi.* plugged in"):
        WithMediumMeter(board, FnirsiMeter(), 0).open()
    assert board.closed


def test_one_meter_cannot_be_both():
    with pytest.raises(BadInput, match="km003c"):
        open_meters("km003c", "km003c")


def test_two_testers_record_beside_each_other(monkeypatch):
    plug_in(monkeypatch, SoftwareKm003c(Supply(0.9)), SoftwareFnirsi(Supply(0.3)))
    meter = open_meters("km003c", "fnirsi")
    assert [sensor.model for sensor in meter.open().sensors] == ["POWER-Z KM003C", "FNIRSI FNB58"]
    meter.configure()
    meter.start()
    amperes = {0: [], 1: []}
    for _ in count():
        meter.clock_exchange()
        for event in meter.read(0.1):
            if isinstance(event, Samples):
                amperes[event.sensor] += event.current_a.tolist()
        if amperes[1]:
            break
    meter.stop()
    meter.close()
    assert amperes[0] == pytest.approx([0.9] * len(amperes[0])) and amperes[0]
    assert amperes[1] == pytest.approx([0.3] * len(amperes[1])) and amperes[1]


def command(load, *arguments, **how):
    environment = {
        **os.environ,
        "PYTHONPATH": f"{HOST}{os.pathsep}{HOST / 'tests/support'}",
        "PYTHONUNBUFFERED": "1",
    }
    words = [sys.executable, HOST / "tests/support/with_usb_testers.py", load, *map(str, arguments)]
    return subprocess.Popen(words, env=environment, text=True, **how)


@pytest.fixture
def load(tmp_path):
    path = tmp_path / "load"
    path.write_text("0.8 5.0")
    return path


def test_record_takes_both(tmp_path, load):
    out = tmp_path / "out"
    done = command(
        load, "record", "--meter", "km003c", "--storage-meter", "fnirsi", "--out", out, "--seconds", 3,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    said = done.communicate()
    assert done.returncode == 0, said
    run = json.loads((out / "run.json").read_text())
    assert run["sensor"]["sensor_id"] == "km003c-KM1"
    assert run["further_sensors"]["1"]["sensor_id"] == "fnirsi-FN1"
    board, medium = read_trace(out), read_trace(out, 1)
    assert board.current_a[board.good] == pytest.approx(0.8, abs=1e-5)
    assert medium.current_a[medium.good] == pytest.approx(0.8 * GAIN + OFFSET_A, abs=2e-5)
    both_s = np.ptp(medium.meter_ns) / np.ptp(board.meter_ns)
    assert both_s == pytest.approx(1, abs=0.5), "a busy computer starts one of them late"


@pytest.mark.slow
def test_a_powerz_is_the_reference_that_a_fnirsi_is_calibrated_against(tmp_path, load):
    """A tester 0.6 % and 2 mA high: the file takes both off again. SIMULATED by stand-ins."""
    waiting, prompts = ["0.05 5.1", "0.4 5.1", "0.8 5.1", "1.2 5.1", "1.5 5.1"], ""
    words = ("calibrate", "--meter", "fnirsi", "--reference-meter", "km003c", "--seconds", 1, "--json")
    pipe = subprocess.PIPE
    with command(
        load, *words, f"--folder={tmp_path}/calibration", f"--keep={tmp_path}/keep", "--room-temperature=23",
        stdin=pipe, stdout=pipe, stderr=pipe,
    ) as process:  # fmt: skip
        while letter := process.stderr.read(1):
            prompts += letter
            if prompts.endswith("('done' ends): "):
                if waiting:
                    load.with_suffix(".new").write_text(waiting.pop(0))
                    load.with_suffix(".new").replace(load)
                    process.stdin.write("\n")
                else:
                    process.stdin.write("done\n")
                process.stdin.flush()
        out = process.stdout.read()
    assert process.returncode == 0, prompts
    file = read_calibration(Path(json.loads(out)["file"]))
    assert file.sensor.id == "fnirsi-FN1"
    line = file.calibration.current
    for amperes in (0.2, 1.0, 1.4):
        assert line.offset + line.gain * (amperes * GAIN + OFFSET_A) == pytest.approx(amperes, abs=5e-4)


@pytest.mark.end_to_end
def test_a_measurement_tells_the_mediums_energy_by_its_own_tester(tmp_path, load):
    """This computer as the board; both testers see the same constant current. SIMULATED by stand-ins."""
    (tmp_path / "db").mkdir()
    (tmp_path / "rig.toml").write_text(
        '[meter]\nport = "km003c"\n[device.rpi4]\nconnection = "local"\nsync = "none"\n'
        f"[device.rpi4.storage]\nsd = {json.dumps(str(tmp_path / 'db'))}\n[device.rpi4.state]\n"
        + "".join(f'{key} = "keep"\n' for key in KEEP)
    )
    words = "--device rpi4 --db leveldb --records 2000 --operations 20000 --idle 1 --repeats 1 --no-harness"
    words += " --rate full --reset load"
    done = command(
        load, *words.split(), "--no-signature", "--storage-meter", "fnirsi", "--rig", tmp_path / "rig.toml",
        "--out", tmp_path / "out", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    said = done.communicate()
    assert done.returncode in {0, 6}, said
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["found"]["storage_sensor"]["number"] == 1
    power_w = result["by_sensor"]["1"]["power_w"]
    assert power_w["value"] == pytest.approx((0.8 * GAIN + OFFSET_A) * 5.0, rel=2e-3)
    assert result["power_w"]["value"] == pytest.approx(0.8 * 5.0, rel=2e-3)
