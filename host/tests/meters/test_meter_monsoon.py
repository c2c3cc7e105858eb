"""A Monsoon's packets become energy that holds the truth, whatever is lost, and power is applied last."""

import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from opjoule.base.errors import BadInput, MeterFault
from opjoule.base.notices import NoticeKind
from opjoule.clocks.exchanges import Exchange, fit_exchanges
from opjoule.energy.trace.journal import TraceJournal, read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters import usb_link
from opjoule.meters.capture import Capture, CaptureSummary
from opjoule.meters.interface import FaultEvent, GapEvent, MeterGone, Samples, Wishes
from opjoule.meters.monsoon import MonsoonMeter, MonsoonSettings
from opjoule.meters.monsoon import meter as monsoon_meter
from opjoule.meters.monsoon.assembler import (
    CALIBRATION,
    Calibration,
    MonsoonAssembler,
    PacketColumn,
    decode,
    whole_packets,
)
from opjoule.meters.monsoon.models import HVPM, LVPM, ChannelScale
from opjoule.meters.monsoon.reader import usb_protocol
from opjoule.meters.registry import open_meter
from software_monsoon import HVPM as UNIT
from software_monsoon import LVPM as LV_UNIT
from software_monsoon import Absent, Forbidden, Hardware, Resetting, SoftwareMonsoon, Supply, stream
from software_usb import SoftwareDevice, plug_in

BURSTS = Supply(
    time_s=tuple(np.arange(0, 12, 0.0437)),
    current_a=tuple(0.55 + 0.6 * (np.arange(0, 12, 0.0437) * 7 % 3 > 1.4)),
    voltage_v=tuple(np.full(np.arange(0, 12, 0.0437).size, 5.1)),
)


def assembler(model=HVPM, unit=UNIT, channel="main"):
    memory = unit.memory()

    def get(opcode, length, signed):
        value = memory[opcode]
        return value - (1 << 8 * length) if signed and value >> (8 * length - 1) & 1 else value

    return MonsoonAssembler(Calibration(model, channel, model.channel_scale(channel, get)))


def events_of(made, taker, chunk=35, late_ns=300_000):
    arrival_ns = made.due_ns + late_ns + 10**12
    events = []
    for at in range(0, len(made.packets), chunk):
        events += taker.take(made.packets[at : at + chunk].tobytes(), arrival_ns[at : at + chunk])
    return events


def trace_of(events):
    samples = [event for event in events if isinstance(event, Samples)]
    columns = (np.concatenate([getattr(s, n) for s in samples]) for n in ("meter_ns", "current_a", "voltage_v"))
    return PowerTrace.of(*columns, [event.gap for event in events if isinstance(event, GapEvent)])


@pytest.mark.parametrize(("model", "unit"), [(HVPM, UNIT), (LVPM, LV_UNIT)])
@pytest.mark.parametrize("channel", ["main", "usb"])
def test_energy_is_the_truth_in_both_ranges(model, unit, channel):
    supply = Supply((0.0, 1.0, 2.0, 3.1), (0.02, 0.9, 0.005, 1.4), (5.0, 5.1, 4.9, 5.0))
    events = events_of(stream(supply, 5, hardware=unit), assembler(model, unit, channel))
    energy = window_energy_j(trace_of(events), Window(500_000_000, 4_500_000_000, 0), model.error_bounds(channel))
    truth = supply.energy_j(0.5, 4.5)
    assert energy.energy.value == pytest.approx(truth, rel=1e-3)
    assert abs(energy.energy.value - truth) < energy.energy.u


def test_a_sample_lies_at_the_centre_of_its_conversion():
    supply = Supply((0.0, 2.0), (0.5, 1.0), (5.0, 5.0))
    trace = trace_of(events_of(stream(supply, 3), assembler()))
    first_high = int(np.argmax(trace.current_a > 0.75))
    assert trace.meter_ns[first_high] == 2_000_000_000 + 100_000
    assert set(np.diff(trace.meter_ns)) == {200_000, 1_000_000}


def test_calibration_is_a_gap_of_known_length_and_no_loss():
    taker = assembler()
    made = stream(Supply(), 4)
    gaps = [event.gap for event in events_of(made, taker) if isinstance(event, GapEvent)]
    assert [(gap.start_meter_ns, gap.duration_ns, gap.lost_samples, gap.reason) for gap in gaps] == [
        (at, 800_000, 4, CALIBRATION) for at in (1_250_000_000, 2_500_000_000, 3_750_000_000)
    ]
    assert taker.losses().lost_samples == 0
    assert taker.losses().link["calibration_samples"] == made.calibrations == 16


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 7, 35, 100_000])
@pytest.mark.parametrize("kind", ["drop_rate", "lose_rate"])
def test_what_was_lost_is_counted_and_every_sample_keeps_its_time(chunk, kind):
    made = stream(BURSTS, 5, **{kind: 0.05, "burst": 4, "calibration_s": 100.0})
    whole = trace_of(events_of(stream(BURSTS, 5, calibration_s=100.0), assembler()))
    taker = assembler()
    trace = trace_of(events_of(made, taker, chunk))
    assert taker.losses().lost_samples == made.dropped + 3 * made.lost_packets > 500
    assert np.array_equal(trace.current_a, whole.current_a[np.isin(whole.meter_ns, trace.meter_ns)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["drop_rate", "lose_rate"])
def test_with_5_percent_lost_the_truth_is_inside_the_stated_interval(kind):
    sensor = HVPM.error_bounds("main")
    ideal = replace(sensor, gain_errors_max={}, current_offset_max_a=0.0)
    inside = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        steps = np.cumsum(rng.exponential(0.02, 400))
        supply = Supply(
            (0.0, *steps),
            tuple(0.5 + rng.choice([0.0, 0.4, 0.9], 401)),
            tuple(5.1 + rng.normal(0, 0.01, 401)),
        )
        made = stream(supply, 3, seed=seed, burst=3, noise_a=2e-3, **{kind: 0.05})
        energy = window_energy_j(trace_of(events_of(made, assembler())), Window(250_000_000, 2_750_000_000, 0), ideal)
        inside += abs(energy.energy.value - supply.energy_j(0.25, 2.75)) <= energy.energy.u
    assert inside >= 95


def test_arrival_fits_the_device_clock_to_the_hosts():
    made = stream(Supply(), 12)
    made.due_ns = (made.due_ns * (1 + 60e-6)).astype(np.int64)
    made.due_ns += np.random.default_rng(3).exponential(300_000, made.due_ns.size).astype(np.int64)
    events = events_of(made, assembler(), late_ns=500_000)
    exchanges = [event for event in events if isinstance(event, Exchange)]
    clock = fit_exchanges(exchanges, "host", "meter")
    for meter_ns in (10**9, 6 * 10**9, 11 * 10**9):
        host_ns = 10**12 + meter_ns * (1 + 60e-6)
        assert abs(float(clock.to_target(int(host_ns))) - meter_ns) < 2 * clock.u_ns(int(host_ns))
        assert clock.u_ns(int(host_ns)) < 1e6


def test_time_that_no_count_explains_is_found_by_arrival_and_reported():
    made = stream(Supply(), 10)
    hole = (made.due_ns > 5 * 10**9) & (made.due_ns < 5.1 * 10**9)
    kept = made.packets[~hole]
    kept[:, 2] = np.arange(len(kept)) % 16  # neither the drop count nor the sequence tells
    made.packets, made.due_ns = kept, made.due_ns[~hole]
    taker = assembler()
    events = events_of(made, taker)
    assert taker.losses().link["unexplained_samples"] == pytest.approx(500, abs=5)
    assert [event.name for event in events if isinstance(event, FaultEvent)] == ["time_unaccounted_for"]
    assert trace_of(events).meter_ns[-1] == pytest.approx(10**10, abs=2_000_000)


@pytest.mark.parametrize("chunk", [1, 35, 999])
@pytest.mark.parametrize("channel", ["main", "usb"])
def test_a_supply_that_the_meter_cut_is_a_fault_where_it_was_cut(channel, chunk):
    made = stream(Supply(), 3, calibration_s=100.0)
    made.packets[1000:1500, 2] ^= 0x30  # bit 4 comes, bit 5 goes
    made.packets[2000:, 2] ^= 0x20
    taker = assembler(channel=channel)
    faults = [event for event in events_of(made, taker, chunk) if isinstance(event, FaultEvent)]
    tripped, off = ("overcurrent_or_overheating", 1, 600_000_000), ("output_off", 1, 600_000_000)
    expected = [tripped, off, ("output_off", 2, 1_200_000_000)] if channel == "main" else [tripped]
    assert [(event.name, event.count, event.meter_ns) for event in faults] == expected
    summary = CaptureSummary(losses=taker.losses())
    [line] = summary.notices()
    assert line.kind is NoticeKind.METER and "overcurrent_or_overheating 1" in line.line


def test_an_output_that_was_off_from_the_start_is_no_fault():
    """A board that is supplied by something else: nothing was cut."""
    made = stream(Supply(), 3)
    made.packets[:, 2] &= 0x0F
    taker = assembler()
    assert not any(isinstance(event, FaultEvent) for event in events_of(made, taker))
    assert not list(CaptureSummary(losses=taker.losses()).notices())


def test_the_drop_count_counts_only_once_it_counts():
    made = stream(Supply(), 2)
    made.packets[:20, :2] = 0xFF
    taker = assembler()
    events_of(made, taker)
    assert taker.losses().lost_samples == 0


def test_bytes_that_are_no_packets_are_refused():
    with pytest.raises(MeterFault, match="packets"):
        decode(bytes(65))
    with pytest.raises(MeterFault, match="claims 7 observations"):
        decode(bytes([0, 0, 0, 7] + [0] * 60))
    assert len(whole_packets(bytes(22))) == 64
    assert decode(b"").count.size == 0


def test_a_stream_without_calibration_ends_with_its_reason():
    made = stream(Supply(), 7)
    made.packets[:, [21, 39, 57]] = 0  # every sample says it is a measurement
    with pytest.raises(MeterFault, match="no calibration"):
        events_of(made, assembler())


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("monsoon:voltage=14", "outside the 0.8 to 13.5 V"),
        ("monsoon:voltage=5.6", "outside the board's 4.75 to 5.25 V"),
        ("monsoon:model=lvpm,voltage=4.2", "channel=usb"),
        ("monsoon:limit=20", "outside the 15.625 A"),
        ("monsoon:volts=5", "'volts': known are channel, label, limit, model, usb, voltage"),
        ("monsoon:voltage=five", "voltage must be .*'five'"),
        ("monsoon:channel=aux", "channel must be .*'aux'"),
        ("monsoon:model=x", "model must be .*'x'"),
        ("monsoon:channel=usb,usb=off", "measures nothing"),
    ],
)
def test_a_setting_that_would_harm_or_mean_nothing_is_refused_before_connecting(name, complaint):
    with pytest.raises(BadInput, match=complaint):
        open_meter(name, Wishes(supply_v=(4.75, 5.25)))


def software(settings=None, **arguments):
    return MonsoonMeter(settings or MonsoonSettings(), partial(SoftwareMonsoon, **arguments))


@pytest.fixture
def opened():
    meters = []

    def make(*args, **arguments):
        meters.append(software(*args, **arguments))
        return meters[-1]

    yield make
    for meter in meters:
        meter.close()


def test_the_reader_process_records_a_run(opened, tmp_path):
    meter = opened(supply=BURSTS, seconds=3.0, on_time=True, drop_rate=0.02)
    identity = meter.open()
    assert (identity.board, identity.serial_number) == ("HVPM", "23171")
    meter.configure()
    journal = TraceJournal(tmp_path)
    capture = Capture(meter, journal)
    capture.start()
    while capture.trace_s < 2.5:
        assert not capture.wait(0.05), capture.summary.ended
    summary = capture.stop()
    journal.close()
    trace = read_trace(tmp_path)
    assert summary.samples == int(trace.good.sum()) > 10_000
    assert summary.losses.lost_samples > 0
    assert summary.exchanges >= 10
    energy = window_energy_j(trace, Window(500_000_000, 2_400_000_000, 0), meter.error_bounds())
    assert abs(energy.energy.value - BURSTS.energy_j(0.5, 2.4)) < energy.energy.u


def test_power_is_applied_last_and_only_with_a_sound_converter(opened):
    settings = MonsoonSettings(voltage_v=5.1, limit_a=4.0, passthrough="auto", supply_v=(4.75, 5.25))
    meter = opened(settings)
    meter.open()
    meter.configure()
    assert meter._get(0x41, 4) == round(5.1 * (1 << 20))
    assert meter._get(0x44, 2) == HVPM.limit_code(4.0)
    assert meter._get(0x10, 1) == 2
    broken = opened(settings, hardware=Hardware(dac_high=0xBFFF))
    broken.open()
    with pytest.raises(MeterFault, match="power stays off"):
        broken.configure()
    with pytest.raises(MeterFault, match=r"monsoon: 65$"):
        broken._get(0x41, 4)  # never written


def test_the_usb_channel_turns_the_pass_through_on(opened):
    meter = opened(MonsoonSettings(model="lvpm", channel="usb"), hardware=LV_UNIT)
    meter.open()
    meter.configure()
    assert meter._get(0x10, 1) == 1


def test_another_model_than_asked_is_refused(opened):
    with pytest.raises(MeterFault, match="LVPM, not a HVPM"):
        opened(hardware=LV_UNIT).open()


def test_a_missing_permission_answers_with_the_udev_rule(waiter, capsys):
    with pytest.raises(MeterFault, match=r"60-monsoon\.rules"):
        MonsoonMeter(MonsoonSettings(), Forbidden).open()
    assert waiter.now_s == 0.0 and not capsys.readouterr().err


@pytest.fixture
def waiter(monkeypatch):
    """A clock that only sleeping moves."""

    class Waiter:
        now_s = 0.0

        def monotonic(self):
            return self.now_s

        def sleep(self, seconds):
            self.now_s += seconds

    waiter = Waiter()
    monkeypatch.setattr(monsoon_meter, "time", waiter)
    return waiter


def test_a_missing_device_is_one_plain_line_after_the_time_of_a_reset(waiter, capsys):
    with pytest.raises(MeterFault, match=r"find device.*plugged in"):
        MonsoonMeter(MonsoonSettings(), Absent).open()
    [said] = capsys.readouterr().err.splitlines()
    assert waiter.now_s == 10.0 and "up to 10 s" in said


@pytest.mark.parametrize("arguments", [{"absent_for": 10}, {"absent_for": 8, "then_forbidden": 2}], ids=str)
def test_a_device_that_resets_for_5_s_is_waited_for(waiter, capsys, arguments):
    """udev gives the right to open it a moment after it is back: that is waited for, too."""
    meter = MonsoonMeter(MonsoonSettings(), partial(Resetting, **arguments))
    try:
        assert meter.open().board == "HVPM"
    finally:
        meter.close()
    assert waiter.now_s == 5.0 and len(capsys.readouterr().err.splitlines()) == 1


def test_an_unplugged_device_ends_the_run_with_its_reason(opened):
    meter = opened(seconds=0.3, unplugged=True)
    meter.open()
    meter.configure()
    meter.start()

    def read_on():
        while True:
            meter.read(1.0)

    with pytest.raises(MeterGone, match="unplugged"):
        read_on()


@pytest.fixture
def plugged_in(monkeypatch):
    """Two Monsoons below the real pyusb, and the library's connection replaced by its name."""
    library = SimpleNamespace(USB_protocol=lambda: "a connection")
    monkeypatch.setitem(sys.modules, "Monsoon", SimpleNamespace(pmapi=library))
    monkeypatch.setattr(SoftwareDevice, "ids", (0x2AB9, 0x0001))
    plug_in(monkeypatch, SoftwareDevice(serial="11111"), SoftwareDevice(serial="22222"))


@pytest.mark.usefixtures("plugged_in")
def test_of_several_monsoons_none_is_opened_until_one_is_named():
    with pytest.raises(MeterFault, match=r"^several devices \(11111, 22222\); name one, for example monsoon:11111$"):
        usb_protocol()
    assert usb_protocol("22222") == "a connection"


def test_the_serial_number_reaches_the_choice_of_the_device():
    assert open_meter("monsoon:22222,voltage=5.1")._make_protocol.args == ("22222",)


def test_several_monsoons_are_reported_without_waiting(waiter, capsys):
    with pytest.raises(MeterFault, match=r"^monsoon: several devices \(A, B\); name one, for example monsoon:A$"):
        MonsoonMeter(MonsoonSettings(), several_monsoons).open()
    assert waiter.now_s == 0.0 and not capsys.readouterr().err


def several_monsoons():
    """Takes the place of a connection, in the reader process."""
    raise MeterFault(usb_link.several("monsoon", ["A", "B"]))


def test_stop_leaves_the_output_on(opened):
    meter = opened(MonsoonSettings(voltage_v=5.0), seconds=0.5)
    meter.open()
    meter.configure()
    meter.start()
    meter.stop()
    assert meter._get(0x41, 4) == 5 << 20


def test_a_reader_process_that_dies_is_reported(opened):
    meter = opened(seconds=2.0, paced=True)
    meter.open()
    meter.configure()
    meter.start()
    meter._device._process.kill()

    def read_on():
        while True:
            meter.read(1.0)

    with pytest.raises(MeterGone, match="process has ended"):
        read_on()


@pytest.mark.parametrize(("model", "end"), [(HVPM, 0xFFFF), (LVPM, 0x7FFF)])
def test_a_coarse_reading_at_the_converters_end_is_clipped_and_a_fine_one_is_not(model, end):
    raw = np.zeros((4, 8), np.uint16)
    raw[:, PacketColumn.MAIN_FINE] = [model.fine_limit - 1, model.fine_limit, model.fine_limit, 0]
    raw[:, PacketColumn.MAIN_COARSE] = [end, end - 1, end, 0]
    raw[3, PacketColumn.MAIN_VOLTAGE] = 0xFFFF
    calibration = Calibration(model, "main", ChannelScale(1.0, 1.0, 0.0, 0.0))
    assert calibration.clipped(raw).tolist() == [False, False, True, True]
