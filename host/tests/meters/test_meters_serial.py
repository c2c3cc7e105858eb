"""The serial meter against a meter in software on a pty: answers, refusals, lost answers, a pulled cable."""

import os
import pty
import select
import time
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
import serial
from opjoule.base.errors import BadInput, MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.meters import messages as m
from opjoule.meters.chips import SensorSettings
from opjoule.meters.interface import FaultEvent, GapEvent, MeterGone, Samples, Wishes
from opjoule.meters.registry import open_meter
from opjoule.meters.serial import meter as serial_meter
from opjoule.meters.serial import port as serial_port
from software_meter import SoftwareMeter, identity

PAIRS = SensorSettings(mode=m.Mode.PAIRS)  # what the software meter speaks


@pytest.fixture
def short_limits(monkeypatch):
    """For what nobody answers; a busy computer answers later than this."""
    monkeypatch.setattr(serial_meter, "IDENTIFY_LIMIT_S", 0.5)
    monkeypatch.setattr(serial_meter, "RETRY_PERIOD_S", 0.1)


@pytest.fixture
def opened():
    """Opens meters by path and closes them at the end."""
    meters = []

    def make(path, **options):
        meters.append(open_meter(f"serial:{path}", Wishes(**{"settings": PAIRS, **options})))
        return meters[-1]

    yield make
    for meter in meters:
        meter.close()


def read_until(meter, enough):
    """Events until `enough(events)`."""
    events, end_s = [], time.monotonic() + 120
    while not enough(events):
        assert time.monotonic() < end_s, "they did not come"
        events += meter.read(0.1)
    return events


def read_samples(meter, count):
    """Events up to `count` samples."""
    return read_until(meter, lambda events: sum(len(e.meter_ns) for e in events if isinstance(e, Samples)) >= count)


def read_on(meter):
    """Reads what nobody wants to see, for the fault that ends it."""
    read_until(meter, lambda events: False)


def message_of(call, kind=MeterFault):
    with pytest.raises(kind) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_meter_says_who_it_is(opened):
    with SoftwareMeter() as device:
        identity = opened(device.path).open()
    assert (identity.firmware_version, identity.board, identity.reset_cause) == (
        "0.1.0",
        "atmega328p",
        "external",
    )
    assert [(sensor.model, sensor.address) for sensor in identity.sensors] == [("ina219", 0x40)]


def test_samples_come_in_order_with_nothing_lost(opened):
    with SoftwareMeter(frames=30) as device:
        meter = opened(device.path)
        meter.open()
        meter.configure()
        meter.start()
        events = read_samples(meter, 480)
        events += meter.stop()
    amperes = np.concatenate([event.current_a for event in events if isinstance(event, Samples)])
    assert list(np.rint(amperes * 0.1 / 10e-6)) == device.source.codes
    assert meter.losses.lost_samples == 0
    assert meter.losses.link["lost_frames"] == 0


def test_settings_reach_the_meter_within_its_limits(opened):
    with SoftwareMeter() as device:
        meter = opened(device.path, settings=SensorSettings(mode=m.Mode.SHUNTS, samples_per_frame=99, bus_every=8))
        meter.open()
        meter.configure()
    sent = next(command for command in device.commands if isinstance(command, m.Configure))
    assert (sent.mode, sent.shunt_adc, sent.samples_per_frame, sent.bus_every) == (m.Mode.SHUNTS, 3, 16, 8)


def test_conversions_of_fewer_bits_have_wider_steps(opened):
    with SoftwareMeter() as device:
        meter = opened(device.path, settings=SensorSettings(mode=m.Mode.PAIRS, shunt_adc=3, bus_adc=0))
        meter.open()
        bounds = meter.error_bounds()
    assert (bounds.current_step_a, bounds.voltage_step_v) == (pytest.approx(1e-4), 32e-3)


def test_frames_lost_at_the_end_are_known_after_stop(opened):
    with SoftwareMeter(frames=5) as device:
        meter = opened(device.path)
        meter.open()
        meter.start()
        events = read_samples(meter, 80)
        device.source.frame()  # made, never sent
        events += meter.stop()
    assert [event.gap.lost_samples for event in events if isinstance(event, GapEvent)] == [16]


def test_a_clock_exchange_comes_back_among_the_events(opened):
    with SoftwareMeter() as device:
        meter = opened(device.path)
        meter.open()
        meter.start()
        before_ns = time.monotonic_ns()
        meter.clock_exchange()
        events = read_until(meter, lambda events: any(isinstance(event, Exchange) for event in events))
        after_ns = time.monotonic_ns()
        events += meter.stop()
    (exchange,) = [event for event in events if isinstance(event, Exchange)]
    assert before_ns <= exchange.sent_ns < exchange.received_ns <= after_ns
    assert exchange.far_sent_ns - exchange.far_received_ns == 5000


def test_lost_answers_are_asked_for_again(opened):
    with SoftwareMeter(frames=3) as device:
        meter = opened(device.path)
        meter.open()
        device.lose_acks = 2
        meter.configure()
        device.lose_acks = 1
        meter.start()
        events = read_samples(meter, 48)
        events += meter.stop()
    # A busy computer may ask more often; the answer to the second one starts nothing anew.
    assert sum(isinstance(command, m.Start) for command in device.commands) >= 2
    assert sum(len(event.meter_ns) for event in events if isinstance(event, Samples)) == 48


def test_another_protocol_version_is_named_with_the_remedy(opened):
    with SoftwareMeter(version=m.VERSION + 1) as device:
        line = message_of(opened(device.path).open)
    assert f"protocol version {m.VERSION + 1}, this host version {m.VERSION}" in line
    assert "update OpJoule" in line
    with SoftwareMeter(version=0) as device:
        assert "pio run" in message_of(opened(device.path).open)


@pytest.mark.usefixtures("short_limits")
def test_a_silent_port_is_said_to_be_silent(opened):
    with SoftwareMeter(deaf=True) as device:
        assert "nothing answered" in message_of(opened(device.path).open)


@pytest.mark.usefixtures("short_limits")
def test_a_port_that_talks_something_else_is_told_from_a_silent_one(opened, monkeypatch):
    for limit_s in (0.5, 5, 60):  # a busy computer may let the other one speak late only
        monkeypatch.setattr(serial_meter, "IDENTIFY_LIMIT_S", limit_s)
        with SoftwareMeter(deaf=True, noise=b"Hello from another sketch\r\n") as device:
            line = message_of(opened(device.path).open)
        if "nothing answered" not in line:
            break
    assert "but no frame" in line
    assert "500000 baud" in line


def test_an_absent_port_lists_those_present(opened, monkeypatch):
    monkeypatch.setattr(serial_port, "ports_present", lambda: ["/dev/ttyACM7 (Arduino Uno)"])
    line = message_of(opened("/dev/ttyACM3").open)
    assert "/dev/ttyACM3" in line
    assert "/dev/ttyACM7 (Arduino Uno)" in line
    monkeypatch.setattr(serial_port, "ports_present", list)
    assert "no serial port" in message_of(opened("/dev/ttyACM3").open)


def test_a_busy_port_is_said_to_be_busy(opened):
    with SoftwareMeter() as device:
        opened(device.path).open()
        assert "busy" in message_of(opened(device.path).open)


def test_a_forbidden_port_names_the_group(opened, monkeypatch):
    def forbidden(*_, **__):
        raise serial_port.serial.SerialException(13, "could not open port: Permission denied")

    monkeypatch.setattr(serial_port.serial, "Serial", forbidden)
    assert "dialout" in message_of(opened("/dev/null").open)


def test_something_that_is_no_serial_port_is_said_so(opened, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    assert f"{file}: " in message_of(opened(file).open)


def test_a_pulled_cable_is_reported_after_what_came_before(opened):
    with SoftwareMeter(frames=4) as device:
        device.hang_up_after_samples = True
        meter = opened(device.path)
        meter.open()

        def use():
            meter.start()
            read_on(meter)

        assert "port closed" in message_of(use, MeterGone)


class SteppedClock(HostClock):
    """Time that passes only while nothing comes, at once."""

    def __init__(self):
        self.at_ns = 1

    def now_ns(self):
        return self.at_ns

    def sleep(self, duration_s):
        self.at_ns += round(duration_s * 1e9)

    def wait_readable(self, source, timeout_s):
        if select.select([source], [], [], 0.02)[0]:
            return True
        self.sleep(timeout_s)
        return False


def test_a_simulated_meter_that_is_twenty_seconds_late_is_waited_for_at_the_end():
    """On a busy computer it takes its time; what it measured until then is not given up."""
    with SoftwareMeter() as device:
        meter = serial_meter.SerialMeter(device.path, settings=PAIRS, clock=SteppedClock())
        meter.open()
        meter.start()
        device.lose_acks = 40  # it is asked twice a second
        meter.stop()
        meter.close()


@pytest.fixture
def woken_port(monkeypatch):
    """A port whose reader is told that something can be read when nothing can; with its other end."""
    master, slave = pty.openpty()
    port = serial_port.SerialPort(os.ttyname(slave), MONOTONIC)
    os.close(slave)
    woken = SimpleNamespace(select=lambda readable, *_: (readable[:1], [], []), error=OSError)
    monkeypatch.setattr(serial.serialposix, "select", woken)
    yield port, master
    port.close()
    with suppress(OSError):
        os.close(master)


def test_a_read_of_nothing_from_a_port_that_is_there_ends_nothing(woken_port, monkeypatch):
    port, master = woken_port
    monkeypatch.setattr(MONOTONIC, "wait_readable", lambda *_: True)
    assert port.read(0.0) == b""
    os.write(master, b"\x01\x02")
    assert read_bytes(port, 2) == b"\x01\x02"


def test_a_read_of_nothing_from_a_port_that_is_gone_tells_of_a_pulled_cable(woken_port):
    port, master = woken_port
    os.close(master)
    assert "cable pulled" in message_of(lambda: port.read(60.0), MeterGone)


def read_bytes(port, count):
    """What comes, up to `count` bytes: a pty hands bytes on a little later."""
    data, end_s = b"", time.monotonic() + 120
    while len(data) < count:
        assert time.monotonic() < end_s, "they did not come"
        data += port.read(0.1)
    return data


def test_a_reset_in_mid_run_is_reported_with_its_cause(opened):
    with SoftwareMeter(frames=4) as device:
        device.after_samples = [identity()]
        meter = opened(device.path)
        meter.open()
        meter.start()
        events = read_samples(meter, 64)
        assert len(events) > 0
        assert "reset in mid-run (external)" in message_of(lambda: read_on(meter))


def test_what_a_restarted_meter_sends_on_its_new_clock_is_not_recorded(opened):
    events = []
    with SoftwareMeter(frames=4) as device:
        device.after_samples = [identity(), m.FaultMessage(m.Fault.EDGE_MISSED, 255, 1, 5)]
        meter = opened(device.path)
        meter.open()
        meter.start()
        with pytest.raises(MeterFault, match="reset in mid-run"):
            while True:
                events += meter.read(0.1)
    assert any(isinstance(event, Samples) for event in events)
    assert not any(isinstance(event, FaultEvent) for event in events)


def test_a_reset_is_reported_even_if_the_line_has_closed_since(opened):
    with SoftwareMeter(frames=4) as device:
        device.after_samples = [identity()]
        meter = opened(device.path)
        meter.open()
        meter.start()
        # The line closes before the next clock exchange. What was lost on the way may leave nothing to read first.
        with suppress(MeterFault):
            read_until(meter, lambda _: meter._reset is not None)
    meter.clock_exchange()
    assert "reset in mid-run (external)" in message_of(lambda: read_on(meter))


def test_refusals_name_the_field_or_the_wiring(opened):
    with SoftwareMeter() as device:
        meter = opened(device.path)
        meter.open()
        device.refuse[m.Configure.TYPE] = (m.Result.BAD_VALUE, 1)
        assert "cannot do mode = 1" in message_of(meter.configure)
        device.refuse[m.Start.TYPE] = (m.Result.SENSOR_FAILED, m.Fault.I2C_NACK)
        assert "i2c_nack" in message_of(meter.start)
    with pytest.raises(BadInput, match="no ADC setting 7"):
        open_and_configure(opened, SensorSettings(shunt_adc=7))


def open_and_configure(opened, settings):
    with SoftwareMeter() as device:
        meter = opened(device.path, settings=settings)
        meter.open()
        meter.configure()


def test_a_meter_name_must_have_a_known_kind_and_a_place():
    with pytest.raises(BadInput, match="unknown kind 'gpib'"):
        open_meter("gpib:7")
    with pytest.raises(BadInput, match="no port"):
        open_meter("serial:")


def test_a_meter_not_open_says_so():
    meter = open_meter("serial:/dev/ttyACM0")
    assert "not open" in message_of(meter.start)
    meter.close()


@pytest.mark.usefixtures("short_limits")
def test_a_port_left_open_by_the_other_side_is_not_read_forever(opened):
    """A pty without a program behind it is a port on which nothing answers."""
    master, slave = pty.openpty()
    try:
        assert "nothing answered" in message_of(opened(os.ttyname(slave)).open)
    finally:
        os.close(master)
        os.close(slave)
