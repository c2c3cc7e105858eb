"""USB testers, through the real pyusb: values, time, losses, and one clear line for each fault."""

import sys
from itertools import count

import numpy as np
import pytest
import usb.backend.libusb1
from hypothesis import given
from hypothesis import strategies as st
from opjoule.base.errors import BadInput, MeterFault
from opjoule.clocks.exchanges import Exchange, fit_exchanges
from opjoule.energy.trace.journal import TraceJournal, read_trace
from opjoule.meters.capture import Capture
from opjoule.meters.fnirsi import DELIVERY_NS, PACKET_NS, FnirsiAssembler, check_sum, command
from opjoule.meters.interface import GapEvent, MeterGone, Samples
from opjoule.meters.km003c import Km003cSource
from opjoule.meters.polling import PolledMeter
from opjoule.meters.registry import open_meter, sensor_ids
from software_usb import (
    SoftwareFnirsi,
    SoftwareKm003c,
    Supply,
    fnirsi_packet,
    fnirsi_sum,
    plug_in,
)

HOST_NS = 10**12
MAKERS = {"km003c": SoftwareKm003c, "fnirsi": SoftwareFnirsi}


def column(events, name):
    return np.concatenate([getattr(event, name) for event in events if isinstance(event, Samples)])


def recorded(name, tmp_path, samples):
    """A trace of at least so many samples, and what its capture tells."""
    meter = open_meter(name)
    try:
        identity = meter.open()
        meter.configure()
        journal = TraceJournal(tmp_path)
        capture = Capture(meter, journal)
        capture.start()
        while capture.summary.samples < samples:
            assert not capture.wait(0.02), capture.summary.ended
        summary = capture.stop()
        journal.close()
    finally:
        meter.close()
    return identity, read_trace(tmp_path), summary


@pytest.mark.parametrize("name", MAKERS)
def test_it_records_what_flows(monkeypatch, tmp_path, name):
    device = MAKERS[name](Supply(0.7312, 5.087))
    plug_in(monkeypatch, device)
    identity, trace, summary = recorded(name, tmp_path, 60)
    assert trace.current_a[trace.good] == pytest.approx(0.7312, abs=1e-5)
    assert trace.voltage_v[trace.good] == pytest.approx(5.087, abs=1e-5)
    assert identity.serial_number == "0001A0000000" and identity.board.split()[0] in {"POWER-Z", "FNIRSI"}
    assert sensor_ids(name, identity) == (f"{name}-0001A0000000",)
    assert summary.exchanges and np.all(np.diff(trace.meter_ns) > 0)
    assert all(device.driver.values()) and not device.claimed, "the kernel has its interface back"


@pytest.mark.parametrize("name", MAKERS)
def test_each_obstacle_is_one_line_with_its_remedy(monkeypatch, name):
    make = MAKERS[name]
    for devices, complaint in (
        ([], rf"{name}: none is plugged in \(.*check the cable"),
        ([make(forbidden=True)], rf"{name}: you may not open it: sudo cp docs/how-to/60-usb-meters.rules"),
        ([make(held=True)], rf"{name}: another program holds it"),
        ([make(dies_after=0)], "is gone .*cable pulled"),
        ([make(serial="A"), make(serial="B")], rf"several devices \(A, B\); name one, for example {name}:A"),
    ):
        plug_in(monkeypatch, *devices)
        with pytest.raises((MeterFault, BadInput), match=complaint) as caught:
            open_meter(name).open()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", MAKERS)
def test_of_several_the_named_one_is_opened_and_a_wrong_number_is_reported(monkeypatch, name):
    plug_in(monkeypatch, MAKERS[name](serial="A"), MAKERS[name](serial="B"))
    meter = open_meter(f"{name}:B")
    assert meter.open().serial_number == "B"
    meter.close()
    with pytest.raises(MeterFault, match=r"serial number C \(found: A, B\)"):
        open_meter(f"{name}:C").open()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("wanted", ["", ":A"])
def test_testers_that_share_a_serial_number_are_reported_as_such(monkeypatch, name, wanted):
    plug_in(monkeypatch, MAKERS[name](serial="A"), MAKERS[name](serial="A"))
    with pytest.raises(
        BadInput, match=rf"{name}: several devices \(A, A\) that no serial number tells apart: .*only one"
    ):
        open_meter(name + wanted).open()


def test_the_example_is_a_serial_number_that_one_device_alone_has(monkeypatch):
    plug_in(monkeypatch, *(SoftwareFnirsi(serial=serial) for serial in ("", "A", "A", "B")))
    with pytest.raises(BadInput, match=r"one without a serial number, A, A, B\); name one, for example fnirsi:B$"):
        open_meter("fnirsi").open()


@pytest.mark.parametrize("name", MAKERS)
def test_a_missing_library_names_its_file_and_a_missing_libusb_its_package(monkeypatch, name):
    for backend in ("libusb0", "libusb1", "openusb"):
        monkeypatch.setattr(f"usb.backend.{backend}.get_backend", lambda find_library=None: None)
    with pytest.raises(MeterFault, match=r"apt-get install libusb-1.0-0"):
        open_meter(name).open()
    monkeypatch.setitem(sys.modules, "usb.core", None)
    with pytest.raises(MeterFault, match=r"pip install -r host/requirements/usb\.in"):
        open_meter(name).open()


@pytest.mark.parametrize(("name", "after"), [("km003c", 300), ("fnirsi", 40)])
def test_a_cable_pulled_in_mid_run_ends_it_and_keeps_what_came(monkeypatch, tmp_path, name, after):
    plug_in(monkeypatch, MAKERS[name](dies_after=after))
    meter = open_meter(name)
    meter.open()
    meter.configure()
    journal = TraceJournal(tmp_path)
    capture = Capture(meter, journal)
    capture.start()
    assert capture.wait(30)
    assert "cable pulled" in capture.summary.ended
    capture.stop()
    journal.close()
    meter.close()
    assert read_trace(tmp_path).good.sum() > 10


def test_a_tester_that_answers_nothing_is_reported(monkeypatch):
    plug_in(monkeypatch, SoftwareKm003c(silent_after=0))
    with pytest.raises(MeterFault, match=r"km003c: .* does not answer"):
        open_meter("km003c").open()
    monkeypatch.setattr("opjoule.meters.fnirsi.FIRST_S", 0.2)
    plug_in(monkeypatch, SoftwareFnirsi(mute=True))
    with pytest.raises(MeterFault, match=r"fnirsi: FNB58 at .* answers nothing: .*port marked PC.*firmware"):
        open_meter("fnirsi").open()
    plug_in(monkeypatch, SoftwareFnirsi(first=[fnirsi_packet([(0.5, 5.0)] * 4, kind=0x03)] * 99))
    with pytest.raises(MeterFault, match=r"sends . packets"):
        open_meter("fnirsi").open()


def test_a_tester_that_falls_silent_is_reported(monkeypatch):
    plug_in(monkeypatch, SoftwareKm003c(silent_after=10))
    source = Km003cSource()
    source.open()
    with pytest.raises(MeterGone, match=r"has stopped answering"):
        for _ in count():
            source.read()
    monkeypatch.setattr("opjoule.meters.fnirsi.SILENCE_S", 0.2)
    plug_in(monkeypatch, SoftwareFnirsi(silent_after=5))
    meter = open_meter("fnirsi")
    meter.open()
    meter.start()
    with pytest.raises(MeterGone, match="has stopped sending"):
        for _ in count():
            meter.read(0.1)


def test_a_powerz_of_another_firmware_is_reported(monkeypatch):
    plug_in(monkeypatch, SoftwareKm003c(kind=0x06))
    with pytest.raises(MeterFault, match=r"type 0x06 .*firmware"):
        open_meter("km003c").open()


def test_an_answer_to_an_earlier_question_is_thrown_away(monkeypatch):
    plug_in(monkeypatch, SoftwareKm003c(Supply(0.5), stale=3))
    source = Km003cSource()
    source.open()
    assert source.read().current_a == pytest.approx(0.5)


def test_a_lost_answer_of_a_powerz_is_a_gap_and_is_counted(monkeypatch):
    plug_in(monkeypatch, SoftwareKm003c(Supply(0.5), lose=range(20, 50)))
    now_ns = count(0, 500_000)  # two looks a poll: one poll each millisecond
    meter = PolledMeter(Km003cSource(), lambda: next(now_ns))
    meter.open()
    for _ in range(90):
        meter.poll()
    events = meter.read(0.0)
    (gap,) = [event.gap for event in events if isinstance(event, GapEvent)]
    assert gap.lost_samples == 30 and gap.charge_c is None
    assert meter.losses.link["unanswered"] == 30 and meter.losses.lost_samples == 30
    assert column(events, "meter_ns").size == 60


def test_readings_a_little_apart_are_no_gap(monkeypatch):
    """A busy computer asks less often than 1,000 times a second."""
    plug_in(monkeypatch, SoftwareKm003c(Supply(0.5)))
    now_ns = count(0, 4_000_000)
    meter = PolledMeter(Km003cSource(), lambda: next(now_ns))
    meter.open()
    for _ in range(20):
        meter.poll()
    assert not [event for event in meter.read(0.0) if isinstance(event, GapEvent)]
    assert (meter.losses.lost_samples, meter.losses.link["late_polls"]) == (0, 19)
    assert meter.losses.link["skipped_polls"] == 19 * 7, "asked each 8 ms instead of each"


def test_a_powerz_plugged_in_the_other_way_round_measures_the_same(monkeypatch):
    plug_in(monkeypatch, SoftwareKm003c(Supply(0.5), reversed=True))
    source = Km003cSource()
    source.open()
    assert source.read().current_a == pytest.approx(0.5)


@pytest.mark.parametrize(("name", "amperes"), [("km003c", 6.1), ("fnirsi", 7.05)])
def test_a_current_at_the_end_of_the_range_is_clipped(monkeypatch, tmp_path, name, amperes):
    plug_in(monkeypatch, MAKERS[name](Supply(amperes)))
    _, _, summary = recorded(name, tmp_path, 8)
    assert summary.clipped_samples == summary.samples


@pytest.mark.parametrize("rate", ["0", "2000", "fast"])
def test_a_rate_that_it_cannot_be_asked_at_is_refused(rate):
    with pytest.raises(BadInput, match="rate="):
        open_meter(f"km003c:rate={rate}")


def test_the_beginnings_are_those_that_users_saw():
    """github.com/baryluk/fnirsi-usb-power-data-logger: 8e, 96 and 9e end the commands 81, 82 and 83."""
    assert [command(code)[-1] for code in (0x81, 0x82, 0x83)] == [0x8E, 0x96, 0x9E]


@given(st.binary(min_size=1, max_size=62))
def test_two_forms_of_the_check_sum_agree(data):
    assert check_sum(data) == fnirsi_sum(data)


@pytest.mark.parametrize(
    ("ids", "begun"), [((0x2E3C, 0x5558), [0x81, 0x82, 0x82]), ((0x0483, 0x003B), [0x81, 0x82, 0x83])]
)
def test_each_model_is_begun_in_its_way_and_asked_on(monkeypatch, tmp_path, ids, begun):
    device = SoftwareFnirsi()
    device.ids = ids
    plug_in(monkeypatch, device)
    recorded("fnirsi", tmp_path, 20)
    assert device.commands[:3] == begun and 0x83 in device.commands[3:]


@pytest.mark.parametrize("ids", [(0x2E3C, 0x5558), (0x2E3C, 0x0049)])
def test_a_tester_that_stops_after_a_few_packets_is_asked_again(monkeypatch, tmp_path, ids):
    """An FNB58 with firmware 0.68 stalls if it is asked once a second (issue 19 of baryluk's repository)."""
    device = SoftwareFnirsi(per_request=3)
    device.ids = ids
    plug_in(monkeypatch, device)
    _, _, summary = recorded("fnirsi", tmp_path, 24)
    if ids == (0x2E3C, 0x5558):
        assert summary.losses.lost_samples == 0


def run(model="FNB58", amperes=lambda s: 0.5 + s, seconds=6.0, lose=(), drift=0.0, late_ns=None):
    """Packets of a current over time, each arriving a little after its end; `lose`: those that never come."""
    taker = FnirsiAssembler(model)
    events = []
    for number in range(round(seconds * 25)):
        if number in lose:
            continue
        at_s = [(number * 4 + n + 0.5) * 0.01 for n in range(4)]
        arrival_ns = HOST_NS + round((number + 1) * PACKET_NS * (1 + drift)) + 2_000_000
        if late_ns:
            arrival_ns += late_ns(number)
        events += taker.take(fnirsi_packet([(amperes(s), 5.0) for s in at_s]), arrival_ns)
    return taker, events


def test_samples_lie_in_their_place():
    _, events = run()
    meter_ns = column(events, "meter_ns")
    assert set(np.diff(meter_ns)) == {10_000_000}
    assert column(events, "current_a") == pytest.approx(0.5 + meter_ns * 1e-9, abs=1e-5)


def test_an_fnb48s_gives_its_25_measured_samples_and_no_interpolated_ones():
    _, events = run("FNB48S")
    assert set(np.diff(column(events, "meter_ns"))) == {PACKET_NS}
    assert column(events, "meter_ns").size == 150


def test_a_packet_with_a_wrong_check_sum_is_a_gap_of_four_samples():
    taker = FnirsiAssembler("FNB58")
    events = []
    for number in range(10):
        packet = fnirsi_packet([(0.5, 5.0)] * 4)
        broken = packet[:9] + b"\x77" + packet[10:]
        events += taker.take(broken if number == 4 else packet, HOST_NS + (number + 1) * PACKET_NS)
    (gap,) = [event.gap for event in events if isinstance(event, GapEvent)]
    assert (gap.lost_samples, gap.start_meter_ns, gap.end_meter_ns) == (4, 160_000_000, 200_000_000)
    assert taker.losses().link["bad_packets"] == 1 and taker.losses().lost_samples == 4


def test_a_first_packet_of_189_v_is_none():
    """As an FNB48 sends it when a program is started anew (pull request 4 of baryluk's repository)."""
    taker = FnirsiAssembler("FNB48")
    events = taker.take(fnirsi_packet([(170.39408, 188.74370)] + [(0.0, 0.0)] * 3), HOST_NS)
    assert not events and taker.losses().link["bad_packets"] == 1


def test_packets_that_never_came_are_found_by_arrival():
    taker, events = run(lose=set(range(60, 65)))
    assert taker.losses().link["unexplained_packets"] == 5
    assert column(events, "meter_ns")[-1] == 6_000_000_000 - 5_000_000


def test_a_busy_host_and_a_tester_whose_clock_drifts_lose_nothing():
    for drift, late in ((0.0, lambda n: 300_000_000 if n % 40 == 7 else 0), (0.005, None), (-0.005, None)):
        taker, _ = run(drift=drift, late_ns=late)
        assert taker.losses().lost_samples == 0


def test_arrival_fits_its_pace_to_the_hosts_clock():
    _, events = run(seconds=30, drift=0.003)
    clock = fit_exchanges([event for event in events if isinstance(event, Exchange)], "host", "meter")
    for meter_s in (3, 15, 28):
        host_ns = HOST_NS + round(meter_s * 1e9 * 1.003)
        assert abs(float(clock.to_target(host_ns)) - meter_s * 1e9) < max(2 * clock.u_ns(host_ns), DELIVERY_NS / 2)


def test_the_stand_in_is_below_the_real_library():
    assert usb.backend.libusb1.__name__ == "usb.backend.libusb1" and usb.core.find.__module__ == "usb.core"
