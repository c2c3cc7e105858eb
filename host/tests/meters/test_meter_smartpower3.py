"""Lines of a SmartPower3 become a trace on the device's own clock, of the output that was named."""

import socket
import termios

import numpy as np
import pytest
from opjoule.base.errors import BadInput, MeterFault
from opjoule.clocks.exchanges import Exchange
from opjoule.meters.interface import GapEvent, MeterGone, Samples
from opjoule.meters.registry import open_meter
from opjoule.meters.smartpower3 import SmartPower3Assembler, logging_interval_ms, read_line
from software_smartpower3 import OFF, Output, SoftwareDatagrams, SoftwareSmartPower3, line, line_of_sum_0, without_sums

HOST_NS = 10**12


def samples(events):
    parts = [event for event in events if isinstance(event, Samples)]
    return tuple(
        np.concatenate([getattr(part, name) for part in parts]) for name in ("meter_ns", "current_a", "voltage_v")
    )


def run(texts, *, channel=0, size=37):
    """Events of the text, in pieces of `size` bytes that never end with a line."""
    taker, events = SmartPower3Assembler(channel, 5), []
    data = b"".join(texts)
    for at in range(0, len(data), size):
        events += taker.take(data[at : at + size], HOST_NS + at * 60_000)
    return taker, events


def test_a_line_of_the_makers_example_is_read():
    """The check sums are those of contrib/sp3-datalogger.py's own log format, recomputed here from smartpower3.ino."""
    text = b"0000090005,15000,0230,03450,0,05000,0600,03000,1,00,00000,0000,00000,0,00,"
    total, exclusive = sum(text), 0
    for byte in text:
        exclusive ^= byte
    read = read_line(text + b"%02x,%02x\r\n" % (256 - total % 256, exclusive), 0)
    assert (read.ms, read.volts, read.amperes, read.is_on) == (90_005, 5.0, 0.6, True)
    assert text + b"%02x,%02x\r\n" % (256 - total % 256, exclusive) == line(90_005)


@pytest.mark.parametrize(("channel", "amperes"), [(0, 0.6), (1, 1.2)])
def test_the_named_output_is_recorded_each_5_ms(channel, amperes):
    texts = [line(1000 + 5 * number, Output(), Output(12_000, 1200)) for number in range(400)]
    _, events = run(texts, channel=channel)
    meter_ns, current_a, voltage_v = samples(events)
    assert set(current_a.round(6)) == {amperes} and set(voltage_v.round(6)) == {(5.0, 12.0)[channel]}
    assert set(np.diff(meter_ns)) == {5_000_000} and meter_ns.size == 400
    assert not any(isinstance(event, GapEvent) for event in events)


def test_a_sample_lies_before_its_line_by_the_means_that_the_device_takes():
    _, events = run([line(1000), line(1005)], size=500)
    assert samples(events)[0][0] == 1_000_500_000 - 1_650_000 - 4_000_000 - 1_300_000


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:40] + b"\r\n",
        lambda text: text.replace(b"0600", b"0610"),
        lambda text: text[:30] + text[31:],
        lambda _: b">>> Unknown command <<<\n\r",
        lambda text: text.replace(b"0600", b"-600"),
    ],
    ids=["cut", "wrong digit", "lost byte", "a message", "a sign"],
)
def test_a_damaged_line_is_a_gap_and_counted(damage):
    texts = [line(1000 + 5 * number) for number in range(200)]
    texts[100] = damage(texts[100])
    taker, events = run(texts)
    (gap,) = [event.gap for event in events if isinstance(event, GapEvent)]
    assert gap.lost_samples == 1 and gap.end_meter_ns - gap.start_meter_ns == 5_000_000
    assert taker.losses().link["bad_lines"] == 1 and taker.losses().lost_samples == 1
    assert set(samples(events)[1].round(6)) == {0.6}


def test_a_line_without_its_end_spoils_the_next_one_alone():
    texts = [line(1000 + 5 * number) for number in range(200)]
    texts[100] = texts[100][:50]
    taker, _ = run(texts)
    assert taker.losses().link["bad_lines"] == 1 and taker.losses().lost_samples == 2


def test_the_clock_goes_on_over_its_wrap_after_49_days():
    texts = [line(2**32 - 50 + 5 * number) for number in range(40)]
    meter_ns, *_ = samples(run(texts)[1])
    assert set(np.diff(meter_ns)) == {5_000_000}


@pytest.mark.parametrize("before_ms", [5_000, 90_000, 2**31, 2**32 - 100_000])
def test_a_restart_in_mid_run_is_a_fault(before_ms):
    before, after = ([line(start + 5 * number) for number in range(20)] for start in (before_ms, 2000))
    with pytest.raises(MeterFault, match="restarted in mid-run"):
        run([*before, *after])


def test_a_line_that_others_have_overtaken_is_lost_and_the_run_goes_on():
    times_ms = [1000, 1005, 1010, 1020, 1015, 1025, 1030]
    taker, events = run([line(at_ms) for at_ms in times_ms], size=83)
    assert taker.losses().link["late_lines"] == 1 and taker.losses().lost_samples == 1
    assert samples(events)[0].size == 6 and bool(np.all(np.diff(samples(events)[0]) > 0))


def test_a_line_that_is_left_out_says_nothing_of_the_clock():
    taker = SmartPower3Assembler(0, 1000)
    assert taker.take(line(5000), HOST_NS)
    for text in (line(4500), line(5000), b"damaged\n"):
        assert not taker.take(text, HOST_NS + 900_000_000)


def test_a_value_that_the_busy_device_writes_twice_counts_once():
    texts = [line(1000 + 5 * (number - number % 2)) for number in range(40)]
    taker, events = run(texts)
    assert taker.losses().link["same_time"] > 15
    assert bool(np.all(np.diff(samples(events)[0]) > 0))


def test_what_the_device_says_of_its_output_is_a_fault_of_the_supply():
    cut = Output(0, 0, on=0, status=0x04)
    taker, _ = run([line(1000), line(1005), line(1010, cut), line(1015, cut, low_input=1)])
    assert taker.losses().faults == {"output_off": 2, "overcurrent_or_overheating": 2, "low_input": 1}


def test_the_end_of_the_range_is_flagged():
    _, events = run([line(1000), line(1005, Output(5000, 6666))])
    assert [bool(event.clipped[0]) for event in events if isinstance(event, Samples)] == [False, True]


def read_some(meter, count=40):
    meter.start()
    events = []
    while sum(isinstance(event, Samples) for event in events) < count:
        events += meter.read(0.5)
    return events


def test_the_meter_reads_the_device_at_its_port():
    with SoftwareSmartPower3() as device:
        meter = open_meter(f"smartpower3:{device.path},channel=0")
        identity = meter.open()
        events = read_some(meter)
        meter.stop()
        meter.close()
    assert identity.simulated and "a line each 5 ms by 921,600 baud" in identity.notes[0]
    assert set(samples(events)[1].round(6)) == {0.6}
    assert any(isinstance(event, Exchange) for event in events)
    assert meter.error_bounds().seen_fraction == 1.0 and 0.3e6 < meter.error_bounds().stamp_u_ns < 1e6


def test_another_speed_and_interval_are_found_and_the_user_told():
    with SoftwareSmartPower3(speed=termios.B115200, interval_ms=50) as device:
        meter = open_meter(f"smartpower3:{device.path},channel=0")
        notes = " ".join(meter.open().notes)
        meter.close()
    assert "50 ms by 115,200 baud" in notes and "Logging Interval to 5 ms" in notes
    assert meter.error_bounds().seen_fraction == 0.6


def test_a_sum_of_0_counts_though_older_firmware_writes_it_with_three_digits():
    texts = [line_of_sum_0(1000 + 5 * number) if number % 2 else line(1000 + 5 * number) for number in range(20)]
    taker, events = run(texts)
    assert taker.losses().link["bad_lines"] == 0 and samples(events)[0].size == 20


def test_a_device_whose_firmware_writes_no_check_sums_is_to_be_updated():
    device = SoftwareSmartPower3(written=without_sums, speed=termios.B115200)
    with device, pytest.raises(MeterFault, match=r"firmware is older than December 2021; update it"):
        open_meter(f"smartpower3:{device.path},channel=0").open()


@pytest.fixture
def port():
    """A UDP port that is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_a_datagram_whose_line_has_lost_its_end_does_not_spoil_the_next(port):
    """The firmware sends 7 bytes of check sums, and `100,5a` with its line end has 8."""
    meter = open_meter(f"smartpower3:udp:{port},channel=0")
    with SoftwareDatagrams(port, texts=lambda ms: line_of_sum_0(ms)[:-1]):
        meter.open()
        events = read_some(meter)
    meter.close()
    assert meter.losses.link["bad_lines"] == 0 and not any(isinstance(event, GapEvent) for event in events)


def test_datagrams_are_read_as_lines_are(port):
    meter = open_meter(f"smartpower3:udp:{port},channel=0")
    with SoftwareDatagrams(port):
        assert "UDP from 127.0.0.1" in meter.open().notes[0]
        events = read_some(meter)
        with pytest.raises(MeterFault, match="ss -ulpn"):
            open_meter(f"smartpower3:udp:{port},channel=0").open()
    meter.close()
    assert set(samples(events)[1].round(6)) == {0.6} and not any(isinstance(event, GapEvent) for event in events)


def test_of_several_senders_the_first_one_is_read(port):
    meter = open_meter(f"smartpower3:udp:{port},channel=0")
    with SoftwareDatagrams(port):
        meter.open()
        meter.start()
        with SoftwareDatagrams(port, texts=lambda ms: line(90_000 + ms, Output(5000, 100)), host="127.0.0.2"):
            while meter.losses.link["datagrams_of_others"] < 20:
                events = meter.read(0.5)
                assert {event.current_a[0].round(6) for event in events if isinstance(event, Samples)} <= {0.6}
    meter.close()


def test_several_senders_are_refused_when_the_meter_is_opened(port, monkeypatch):
    monkeypatch.setattr("opjoule.meters.smartpower3.FIRST_LINES", 40)
    with (
        SoftwareDatagrams(port, host="127.0.0.2"),
        SoftwareDatagrams(port),
        pytest.raises(MeterFault, match=rf"UDP port {port} \(127.0.0.\d, 127.0.0.\d\): set another port"),
    ):
        open_meter(f"smartpower3:udp:{port},channel=0").open()


@pytest.mark.parametrize("first_ms", [1000, 2**32 - 8])
def test_the_interval_is_found_though_datagrams_overtake_each_other(first_ms):
    assert logging_interval_ms([(first_ms + step_ms) % 2**32 for step_ms in (0, 10, 5, 15)]) == 5


def test_a_switched_off_output_a_restart_and_a_pulled_cable_are_told():
    with SoftwareSmartPower3() as device:
        meter = open_meter(f"smartpower3:{device.path},channel=0")
        meter.open()
        read_some(meter, 5)
        device.switch_off()
        while "output_off" not in meter.losses.faults:
            meter.read(0.5)
        device.restart()
        with pytest.raises(MeterFault, match="restarted in mid-run"):
            while True:
                meter.read(0.2)
        device.pull()
        with pytest.raises(MeterGone, match="cable pulled"):
            while True:
                try:
                    meter.read(0.2)
                except MeterGone:
                    raise
                except MeterFault:
                    pass  # lines since the restart may be on their way
        meter.close()


def test_what_does_not_fit_is_one_line_with_a_remedy(monkeypatch):
    with pytest.raises(BadInput, match=r"output .*channel=0"):
        open_meter("smartpower3:/dev/ttyUSB0")
    with pytest.raises(BadInput, match=r"channel must be 0 or 1, .*'2'"):
        open_meter("smartpower3:/dev/ttyUSB0,channel=2")
    with pytest.raises(BadInput, match="1 to 65535"):
        open_meter("smartpower3:udp:70000,channel=0")
    monkeypatch.setattr("opjoule.meters.smartpower3.FIRST_S", 0.5)
    with SoftwareSmartPower3(interval_ms=0) as silent, pytest.raises(MeterFault, match="Logging Interval"):
        open_meter(f"smartpower3:{silent.path},channel=0").open()
    with SoftwareSmartPower3(OFF, Output()) as other, pytest.raises(MeterFault, match=r"output 0 is off.*channel=1"):
        open_meter(f"smartpower3:{other.path},channel=0").open()
    with SoftwareSmartPower3(speed=-1) as foreign, pytest.raises(MeterFault, match=r"SmartPower3.* speed"):
        open_meter(f"smartpower3:{foreign.path},channel=0").open()
