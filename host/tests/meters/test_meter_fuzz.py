"""Whatever bytes arrive: events in order of time, or one MeterFault; never another error."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.base.errors import MeterFault
from opjoule.meters.interface import EdgeEvent, GapEvent, Samples
from opjoule.meters.monsoon.assembler import Calibration, MonsoonAssembler, whole_packets
from opjoule.meters.monsoon.models import HVPM, LVPM
from opjoule.meters.ppk2 import Modifiers, Ppk2Assembler
from software_meter import damage_plans, spoil
from software_monsoon import HVPM as UNIT
from software_monsoon import Supply, stream
from software_ppk2 import META, words

MONSOON_BYTES = stream(Supply(), 0.2).packets.tobytes()
PPK2_BYTES = words(np.full(2000, 0.5)).astype("<u4").tobytes()


def check_order(events):
    """Samples and gaps follow each other without overlap: what the journal asks for."""
    last_ns = -(1 << 62)
    for event in events:
        if isinstance(event, GapEvent):
            assert event.gap.start_meter_ns >= last_ns
            last_ns = event.gap.end_meter_ns
        elif isinstance(event, Samples):
            assert int(event.meter_ns[0]) >= last_ns
            assert bool(np.all(np.diff(event.meter_ns) > 0))
            assert event.meter_ns.size == event.current_a.size == event.voltage_v.size
            last_ns = int(event.meter_ns[-1])
        elif isinstance(event, EdgeEvent):
            assert event.level in {0, 1}


def feed_monsoon(data, model, sizes):
    scale = HVPM.channel_scale("main", lambda opcode, length, signed: UNIT.memory()[opcode])
    taker = MonsoonAssembler(Calibration(model, "main", scale))
    events, at, arrival_ns = [], 0, 10**12
    try:
        while at < len(data):
            size = 64 * sizes[at % len(sizes)]
            part = whole_packets(data[at : at + size])
            arrival_ns += len(part) // 64 * 600_000
            events += taker.take(part, np.full(len(part) // 64, arrival_ns, np.int64))
            at += size
    except MeterFault:
        return
    check_order(events)


SIZES = st.lists(st.integers(1, 50), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(damage_plans, st.sampled_from([HVPM, LVPM]), SIZES)
def test_a_damaged_monsoon_stream(plan, model, sizes):
    feed_monsoon(spoil(MONSOON_BYTES, plan), model, sizes)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=2000), SIZES)
def test_noise_for_a_monsoon(data, sizes):
    feed_monsoon(data, HVPM, sizes)


def feed_ppk2(data, sizes):
    taker = Ppk2Assembler(Modifiers.parse(META), 5.0)
    events, at, number = [], 0, 0
    while at < len(data):
        size = sizes[number % len(sizes)]
        events += taker.take(data[at : at + size], 10**12 + at * 2500)
        at, number = at + size, number + 1
    check_order(events)


@settings(max_examples=100, deadline=None)
@given(damage_plans, SIZES)
def test_a_damaged_ppk2_stream(plan, sizes):
    feed_ppk2(spoil(PPK2_BYTES, plan), [7 * size for size in sizes])


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400))
def test_a_ppk2s_calibration_is_read_or_refused(text):
    try:
        values = Modifiers.parse(text)
    except MeterFault:
        return
    assert values.resistor_ohm.shape == (5,)
    assert not bool(np.any(values.resistor_ohm == 0))
