"""Packets of a PowerSensor3 become a trace on the device's clock, of the pair that is in the board's supply."""

import time

import numpy as np
import pytest
from opjoule.base.errors import BadInput, MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.meters.interface import GapEvent, MeterGone, Samples
from opjoule.meters.powersensor3 import Pair, PowerSensor3Assembler, SensorSetting, powersensor3_sensor
from opjoule.meters.registry import open_meter
from software_powersensor3 import (
    GAIN,
    PERIOD_US,
    VOLT_PER_A,
    ZERO_V,
    SoftwarePowerSensor3,
    packets,
    settings,
    without_names,
)

HOST_NS = 10**12
heard = SoftwarePowerSensor3.heard
CURRENT = SensorSetting("MLX10", "board", ZERO_V, VOLT_PER_A, in_use=True)
VOLTAGE = SensorSetting("voltage", "board", 0.0, GAIN, in_use=True)
STEP_A = CURRENT.step


def run(data, *, size=5000, number=0, delays_ns=None):
    taker, events = PowerSensor3Assembler(Pair(number, CURRENT, VOLTAGE)), []
    for at in range(0, len(data), size):
        arrival_ns = HOST_NS + (at + size) // 18 * PERIOD_US * 1000
        events += taker.take(data[at : at + size], arrival_ns + (delays_ns(at) if delays_ns else 0))
    return taker, events


def samples(events):
    parts = [event for event in events if isinstance(event, Samples)]
    return tuple(
        np.concatenate([getattr(part, name) for part in parts]) for name in ("meter_ns", "current_a", "voltage_v")
    )


@pytest.mark.parametrize("size", [1, 7, 18, 5003])
def test_packets_are_put_together_however_the_bytes_are_cut(size):
    data = packets(np.full(400, 0.6), 5.0).tobytes()
    _, events = run(data, size=size)
    meter_ns, current_a, voltage_v = samples(events)
    assert meter_ns.size == 100 and set(np.diff(meter_ns)) == {4 * PERIOD_US * 1000}
    assert current_a == pytest.approx(0.6, abs=STEP_A) and voltage_v == pytest.approx(5.0, abs=VOLTAGE.step)


def test_a_current_that_flows_backwards_keeps_its_sign():
    current_a = samples(run(packets(np.full(40, -0.6), 5.0).tobytes())[1])[1]
    assert current_a == pytest.approx(-0.6, abs=STEP_A)


def test_a_sample_is_the_mean_of_the_power():
    amperes, volts = np.tile([0.0, 4.0], 40), np.tile([5.0, 4.0], 40)
    _, current_a, voltage_v = samples(run(packets(amperes, volts).tobytes())[1])
    assert current_a * voltage_v == pytest.approx(8.0, rel=0.02)


def test_the_other_pair_is_the_one_that_was_named():
    rows = packets(np.full(40, 2.0), 5.0, pair=1)
    assert samples(run(rows.tobytes(), number=1)[1])[1] == pytest.approx(2.0, abs=STEP_A)


@pytest.mark.parametrize("cut", [5, 18, 18 * 15])
def test_lost_bytes_are_a_gap_and_the_rest_keeps_its_time(cut):
    data = packets(np.linspace(0, 4, 4000), 5.0).tobytes()
    taker, events = run(data[:36_000] + data[36_000 + cut :])
    gaps = [event.gap for event in events if isinstance(event, GapEvent)]
    meter_ns, current_a, _ = samples(events)
    assert len(gaps) == 1 and taker.losses().lost_samples == gaps[0].lost_samples >= 1
    centres = (np.arange(4000) * PERIOD_US - PERIOD_US / 2) * 1000
    assert current_a == pytest.approx(np.interp(meter_ns, centres, np.linspace(0, 4, 4000)), abs=STEP_A)


def test_whole_turns_of_the_time_stamp_are_found_by_arrival():
    rows = packets(np.full(100_000, 0.6), 5.0)
    turn = 1024 * 50 // np.gcd(1024, 50) // 50  # packets until the stamp is the same again
    lost = turn * 2
    data = np.concatenate([rows[:50_000], rows[50_000 + lost :]])
    taker, events = PowerSensor3Assembler(Pair(0, CURRENT, VOLTAGE)), []
    sent = np.concatenate([np.arange(50_000), np.arange(50_000 + lost, 100_000)])
    for at in range(0, len(data), 250):
        arrival_ns = HOST_NS + int(sent[min(at + 250, len(data)) - 1]) * PERIOD_US * 1000
        events += taker.take(data[at : at + 250].tobytes(), arrival_ns)
    assert taker.losses().link["turns_found_by_arrival"] == lost * PERIOD_US // 1024
    assert samples(events)[0][-1] == pytest.approx(100_000 * PERIOD_US * 1000, abs=1_000_000)


def test_a_busy_host_is_no_loss():
    data = packets(np.full(100_000, 0.6), 5.0).tobytes()
    taker, _ = run(data, delays_ns=lambda at: 400_000_000 if 600_000 < at < 700_000 else 0)
    assert taker.losses().link["turns_found_by_arrival"] == 0 and taker.losses().lost_samples == 0


def test_a_marker_is_a_round_trip_between_both_clocks():
    taker = PowerSensor3Assembler(Pair(0, CURRENT, VOLTAGE))
    assert taker.ask(HOST_NS) and not taker.ask(HOST_NS + 1)
    events = taker.take(packets(np.full(40, 0.6), 5.0, marked=[20]).tobytes(), HOST_NS + 3_000_000)
    (exchange,) = [event for event in events if isinstance(event, Exchange)]
    assert exchange.far_received_ns == 20 * PERIOD_US * 1000
    assert exchange.sent_ns < HOST_NS and exchange.received_ns == HOST_NS + 3_000_000
    assert taker.ask(HOST_NS + 4_000_000)
    assert taker.ask(HOST_NS + 3_000_000_000)  # the marker before is lost


def test_the_end_of_the_range_is_flagged():
    _, events = run(packets(np.full(8, 20.0), 5.0).tobytes())
    assert all(event.clipped.all() for event in events if isinstance(event, Samples))


def test_the_meter_speaks_the_devices_protocol():
    with SoftwarePowerSensor3(streaming=True) as device:  # as a killed program leaves it
        meter = open_meter(f"powersensor3:{device.path}")
        identity = meter.open()
        meter.configure()
        meter.start()
        events, until_s = [], time.monotonic() + 30
        while time.monotonic() < until_s and not (
            any(isinstance(event, Exchange) for event in events)
            and sum(event.meter_ns.size for event in events if isinstance(event, Samples)) > 500
        ):
            meter.clock_exchange()
            events += meter.read(0.2)
        events += meter.stop()
        meter.close()
    assert identity.firmware_version == "F411-1.6.1" and identity.simulated
    assert "pair 0 (board)" in identity.notes[0] and "20,000 packets/s" in identity.notes[1]
    assert samples(events)[1] == pytest.approx(0.6, abs=STEP_A)
    assert any(isinstance(event, Exchange) for event in events)
    assert device.received.endswith(b"T")


def test_the_stream_is_not_stopped_before_a_marker_has_come(monkeypatch):
    monkeypatch.setattr("opjoule.meters.powersensor3.MARK_WAIT_S", 10.0)  # a test computer may be busy
    with SoftwarePowerSensor3() as device:
        meter = open_meter(f"powersensor3:{device.path}")
        meter.open()
        for _ in range(5):
            meter.start()
            meter.read(0.5)
            meter.clock_exchange()
            assert any(isinstance(event, Exchange) for event in meter.stop())
        meter.close()
    assert not device.hangs


def test_the_stream_is_stopped_though_a_marker_is_lost(monkeypatch):
    monkeypatch.setattr(SoftwarePowerSensor3, "heard", lambda self, byte: byte == b"M" or heard(self, byte))
    with SoftwarePowerSensor3() as device:
        meter = open_meter(f"powersensor3:{device.path}")
        meter.open()
        meter.start()
        meter.clock_exchange()
        assert not any(isinstance(event, Exchange) for event in meter.stop())
        meter.close()
    assert not device.streaming


def test_a_pulled_cable_is_told():
    with SoftwarePowerSensor3() as device:
        meter = open_meter(f"powersensor3:{device.path}")
        meter.open()
        meter.start()
        device.pull()
        with pytest.raises(MeterGone, match="cable pulled"):
            while True:
                meter.read(0.2)
        meter.close()


def test_what_does_not_fit_is_one_line_with_a_remedy(monkeypatch):
    monkeypatch.setattr("opjoule.meters.powersensor3.ANSWER_S", 0.3)
    with pytest.raises(BadInput, match=r"pair must be .*'4'"):
        open_meter("powersensor3:/dev/ttyACM0,pair=4")
    for memory, pair, error, said in (
        (settings(used=(0, 1)), "", BadInput, r"pairs 0 \(board\), 1 \(disk\) are on: say which one"),
        (settings(used=()), "", MeterFault, "no pair of sensors is on"),
        (settings(), ",pair=1", MeterFault, r"pair 1 is off \(on: 0 \(board\)\)"),
        (settings(volt_per_a=0.0), "", MeterFault, "has no sensitivity"),
        (settings()[:100], "", MeterFault, "does not send its sensors' settings"),
    ):
        with SoftwarePowerSensor3(memory=memory) as device, pytest.raises(error, match=said):
            open_meter(f"powersensor3:{device.path}{pair}").open()
    with SoftwarePowerSensor3(version=b"") as other, pytest.raises(MeterFault, match="no PowerSensor3 answers"):
        open_meter(f"powersensor3:{other.path}").open()


def test_a_device_with_firmware_before_1_3_is_to_be_updated(monkeypatch):
    monkeypatch.setattr("opjoule.meters.powersensor3.ANSWER_S", 0.3)
    device = SoftwarePowerSensor3(memory=without_names(settings()), version=b"F401-1.2.1\r\n")
    with device, pytest.raises(MeterFault, match=r"has firmware F401-1\.2\.1: update it to 1\.3 or later"):
        open_meter(f"powersensor3:{device.path}").open()


def test_the_bounds_are_those_of_its_sensors():
    with SoftwarePowerSensor3(memory=settings(volt_per_a=0.025)) as device:
        meter = open_meter(f"powersensor3:{device.path}")
        meter.open()
        meter.close()
    bounds, usual = meter.error_bounds(), powersensor3_sensor()
    assert bounds.current_max_a == pytest.approx(66.0) and usual.current_max_a == pytest.approx(13.75)
    assert bounds.current_step_a > 4 * usual.current_step_a
