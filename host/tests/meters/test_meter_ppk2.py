"""A PPK2's 32-bit samples become a trace: calibrated, in time over losses that its counter shows or wraps past."""

import numpy as np
import pytest
from opjoule.base.errors import BadInput, MeterFault
from opjoule.meters.interface import EdgeEvent, GapEvent, MeterGone, Samples
from opjoule.meters.ppk2 import DELIVERY_NS, SAMPLE_NS, Modifiers, Ppk2Assembler
from opjoule.meters.registry import open_meter
from software_ppk2 import META, SoftwarePpk2, words

HOST_NS = 10**12


def run(data, *, chunk=1000, taker=None, keep=None, stall=None):
    """Feeds words in pieces of `chunk`, each arriving when its last sample was made; `keep` says which arrive."""
    taker = taker or Ppk2Assembler(Modifiers.parse(META), 5.1)
    keep = np.ones(data.size, bool) if keep is None else keep
    events = []
    for at in range(0, data.size, chunk):
        part = data[at : at + chunk][keep[at : at + chunk]]
        arrival_ns = HOST_NS + (at + chunk) * SAMPLE_NS + DELIVERY_NS // 2
        if stall and stall[0] <= arrival_ns - HOST_NS <= stall[1]:
            arrival_ns = HOST_NS + stall[1]
        events += taker.take(part.astype("<u4").tobytes(), arrival_ns)
    return taker, events


def samples(events):
    parts = [event for event in events if isinstance(event, Samples)]
    return tuple(
        np.concatenate([getattr(part, name) for part in parts]) for name in ("meter_ns", "current_a", "voltage_v")
    )


def test_the_current_is_the_calibrated_one_and_the_voltage_the_stated_one():
    _, events = run(words(np.full(2000, 0.6)))
    meter_ns, current_a, voltage_v = samples(events)
    assert current_a == pytest.approx(np.full(100, 0.6), abs=1e-3)
    assert set(voltage_v) == {5.1}
    assert meter_ns[0] == 100_000
    assert set(np.diff(meter_ns)) == {200_000}


def test_a_calibration_value_that_was_never_set_is_the_default():
    """Nordic's own program takes its defaults, too (pc-nrfconnect-ppk, serialDevice.ts, parseMeta)."""
    plain = Modifiers.parse("")
    unset = "".join(f"{key}{n}: -nan\n" for key in ("R", "O", "GS", "GI", "S", "I", "UG") for n in range(5))
    zero = "".join(f"{key}{n}: 0.0000\n" for key in ("R", "GI", "UG") for n in range(5))
    for text in (unset, zero, unset.replace("-nan", "inf")):
        for name, values in vars(Modifiers.parse(text)).items():
            assert np.array_equal(values, getattr(plain, name)), name
    assert Modifiers.parse("GS4: 0.0000").gain_square[4] == 0.0


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_samples_are_put_together_however_the_bytes_are_cut(size):
    data = words(np.linspace(0.2, 0.9, 4000)).astype("<u4").tobytes()
    whole = samples(run(words(np.linspace(0.2, 0.9, 4000)))[1])
    taker = Ppk2Assembler(Modifiers.parse(META), 5.1)
    events = []
    for at in range(0, len(data), size):
        events += taker.take(data[at : at + size], HOST_NS + at * SAMPLE_NS // 4)
    assert np.array_equal(samples(events)[1], whole[1])


def test_lost_samples_are_a_gap_and_the_rest_keeps_its_time():
    ramp = np.linspace(0.1, 0.9, 10_000)
    keep = np.ones(ramp.size, bool)
    keep[4000:4050] = False
    taker, events = run(words(ramp), keep=keep)
    (gap,) = [event.gap for event in events if isinstance(event, GapEvent)]
    assert gap.charge_c is None and gap.lost_samples == 2
    assert (gap.start_meter_ns, gap.end_meter_ns) == (40_000_000, 40_500_000)
    assert taker.losses().lost_samples == 50
    meter_ns, current_a, _ = samples(events)
    assert current_a == pytest.approx(np.interp(meter_ns, np.arange(ramp.size) * SAMPLE_NS + 5000, ramp), abs=1e-3)


def test_a_loss_of_whole_turns_of_the_counter_is_found_by_arrival():
    keep = np.ones(500_000, bool)
    keep[250_000 : 250_000 + 64 * 100] = False
    taker, events = run(words(np.full(keep.size, 0.5)), keep=keep)
    assert taker.losses().lost_samples == 6400
    assert samples(events)[0][-1] == pytest.approx(keep.size * SAMPLE_NS, abs=300_000)


def test_a_busy_host_is_no_loss():
    data = words(np.full(400_000, 0.5))
    taker, _ = run(data, stall=(1_500_000_000, 2_200_000_000))
    assert taker.losses().lost_samples == 0


def test_the_logic_input_is_the_sync_line():
    logic = np.zeros(3000)
    logic[1234:2000] = 0b1
    logic[500:700] = 0b10  # another input
    _, events = run(words(np.full(3000, 0.4), logic=logic))
    edges = [event for event in events if isinstance(event, EdgeEvent)]
    assert [(edge.meter_ns, edge.level, edge.index) for edge in edges] == [
        (12_340_000, 1, 0),
        (20_000_000, 0, 1),
    ]


def test_a_reading_at_the_limit_is_flagged():
    _, events = run(words(np.full(1000, 1.2)))
    assert all(event.clipped.all() for event in events if isinstance(event, Samples))


def test_the_meter_speaks_the_kits_wire_format():
    with SoftwarePpk2(words(np.full(20_000, 0.7)).astype("<u4").tobytes()) as kit:
        meter = open_meter(f"ppk2:{kit.path},voltage=5.1")
        assert any("at most 1 A" in note for note in meter.open().notes)
        meter.configure()
        meter.start()
        events = []
        while sum(event.meter_ns.size for event in events if isinstance(event, Samples)) < 1000:
            events += meter.read(1.0)
        meter.stop()
        meter.close()
    assert samples(events)[1] == pytest.approx(np.full(1000, 0.7), abs=1e-3)
    assert b"\x11\x01" in kit.received  # ampere meter
    assert b"\x0d\x13\x88" in kit.received  # the regulator ends at 5.0 V
    assert b"\x0c\x01" in kit.received  # board switched on
    assert kit.received.endswith(b"\x07")


def test_a_pulled_cable_is_reported():
    with SoftwarePpk2(hang_up=True) as kit:
        meter = open_meter(f"ppk2:{kit.path},voltage=5")
        meter.open()

        def measure():  # the kit hangs up when it is started, which may show while the command is still sent
            meter.start()
            while True:
                meter.read(0.2)

        with pytest.raises(MeterGone, match="cable pulled"):
            measure()
        meter.close()


def test_what_cannot_be_measured_is_refused(tmp_path, monkeypatch):
    with pytest.raises(BadInput, match="voltage="):
        open_meter("ppk2:/dev/ttyACM0")
    with pytest.raises(BadInput, match="outside its"):
        open_meter("ppk2:/dev/ttyACM0,voltage=12")
    with pytest.raises(MeterFault, match="dialout"):
        open_meter(f"ppk2:{tmp_path}/none,voltage=5").open()
    monkeypatch.setattr("opjoule.meters.ppk2._META_LIMIT_S", 0.2)
    with SoftwarePpk2(meta="") as other, pytest.raises(MeterFault, match="two ports"):
        open_meter(f"ppk2:{other.path},voltage=5").open()
