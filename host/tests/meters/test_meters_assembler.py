"""Samples in time from frames, with every lost conversion accounted for."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.meters import messages as m
from opjoule.meters.chips import INA219, SensorSettings, code_ends
from opjoule.meters.interface import EdgeEvent, FaultEvent, GapEvent, Samples
from opjoule.meters.serial.assembler import Assembler, parse
from opjoule.meters.serial.conversions import ConversionAssembler
from opjoule.meters.serial.wire import FrameReader, encode_frame, signed_difference
from software_meter import FULL_SCALE, PERIOD_TICKS, PairsSource, damage_plans, spoil

TICK_NS = 500
PERIOD_NS = PERIOD_TICKS * TICK_NS
AMPERE_PER_CODE = 1e-4


def assembler(mode=m.Mode.PAIRS, anchor=0, shunt_adc=3):
    chosen = SensorSettings(mode=mode, shunt_adc=shunt_adc)
    ends = code_ends(m.ControllerKind.ATMEGA328P, INA219, chosen)
    conversions = ConversionAssembler(0, INA219.times(chosen), INA219.scale(), TICK_NS, ends)
    return Assembler(TICK_NS, {0: conversions}, anchor)


def run(messages, **options):
    part = assembler(**options)
    events = [event for message in messages for event in part.take(message, 0)]
    return part, events


def samples(events):
    return [event for event in events if isinstance(event, Samples)]


def gaps(events):
    return [event.gap for event in events if isinstance(event, GapEvent)]


def test_codes_become_amperes_volts_and_centres_of_the_current_conversion():
    source = PairsSource(first_ticks=100_000)
    _, events = run([source.frame([10000, -1])])
    (got,) = samples(events)
    assert got.current_a == pytest.approx([1.0, -1e-4])
    assert got.voltage_v == pytest.approx([5.04, 5.04])
    # The pair ends with the bus conversion (532 us); the current's centre is 266 us before that began.
    assert list(got.meter_ns) == [50_000_000 - 798_000, 50_000_000 - 798_000 + PERIOD_NS]


def test_a_lost_frame_is_a_gap_with_its_exact_charge():
    source = PairsSource()
    frames = [source.frame() for _ in range(5)]
    part, events = run([frames[0], frames[1], frames[3], frames[4]])
    (gap,) = gaps(events)
    lost_codes = source.codes[32:48]
    assert gap.lost_samples == 16
    assert gap.charge_c == pytest.approx(np.mean(lost_codes) * AMPERE_PER_CODE * 16 * PERIOD_NS * 1e-9, rel=1e-12)
    assert gap.duration_ns == 16 * PERIOD_NS
    assert part.losses({}).lost_samples == part.losses({}).recovered_samples == 16


def test_frames_lost_at_the_start_are_a_gap_before_the_first_sample():
    source = PairsSource()
    source.frame()
    _, events = run([source.frame(), source.frame()])
    (gap,) = gaps(events)
    assert gap.lost_samples == 16
    assert gap.charge_c == pytest.approx(sum(source.codes[:16]) * AMPERE_PER_CODE * PERIOD_NS * 1e-9, rel=1e-9)
    assert isinstance(events[0], GapEvent)


def test_frames_lost_at_the_end_are_found_by_the_final_status():
    source = PairsSource()
    first = source.frame()
    source.frame()
    item = np.array([(source.index, source.shunt_sum, source.bus_sum, 0)], dtype=m.Status.ITEM)
    status = m.Status(m.Acquisition.IDLE, 2, source.ticks, 0, 0, 900, (0,) * 13, item)
    part, events = run([first, status, status])
    (gap,) = gaps(events)
    assert gap.lost_samples == 16
    assert gap.charge_c == pytest.approx(sum(source.codes[16:]) * AMPERE_PER_CODE * PERIOD_NS * 1e-9, rel=1e-9)
    assert part.losses({}).lost_samples == 16


def test_a_loss_too_long_for_the_wrapping_sums_has_no_charge():
    source = PairsSource()
    first = source.frame()
    lost = 70_000
    for _ in range(lost // 16):
        source.frame()
    _, events = run([first, *(source.frame() for _ in range(3))])
    assert gaps(events)[0].lost_samples == lost
    assert gaps(events)[0].charge_c is None


def test_a_missed_conversion_inside_a_frame_is_a_gap_without_charge():
    frame = PairsSource().frame()
    items = frame.items.copy()
    items["delta_ticks"][5] = 3 * PERIOD_TICKS
    spoiled = m.Pairs(0, 0, frame.first_index, frame.first_end_ticks, frame.shunt_sum, frame.bus_sum, 0, items)
    _, events = run([spoiled])
    (gap,) = gaps(events)
    assert (gap.lost_samples, gap.charge_c) == (2, None)
    assert [len(part.meter_ns) for part in samples(events)] == [5, 11]


def test_a_missed_conversion_between_frames_is_seen_by_its_time():
    source = PairsSource()
    frames = [source.frame()]
    source.ticks += PERIOD_TICKS
    frames += [source.frame(), source.frame()]
    _, events = run(frames)
    assert [gap.lost_samples for gap in gaps(events)] == [1]
    assert gaps(events)[0].charge_c is None


@pytest.mark.parametrize("outage", [20, 382])
def test_an_outage_of_the_sensor_is_a_gap_of_its_whole_length_though_the_meter_counts_one(outage):
    period, flags = 1064, m.Flag.GAP_BEFORE
    frames, at = [], 5000
    for number in range(6):
        if number == 2:
            at += outage * period
            flags = m.Flag.MISSED_BEFORE | m.Flag.GAP_BEFORE
        items = np.array([(period, 5000)] * 8, dtype=m.Shunts.ITEM)
        frames.append(m.Shunts(0, int(flags), number * 8, at, number * 40_000, 0, 1260, 1100, items))
        at, flags = at + 8 * period, m.Flag(0)
    part, events = run(frames, mode=m.Mode.SHUNTS)
    (gap,) = gaps(events)
    assert gap.lost_samples == outage == part.losses({}).lost_samples
    assert gap.charge_c is None
    assert gap.duration_ns == pytest.approx(outage * period * TICK_NS, abs=period * TICK_NS / 100)


def test_a_chip_far_from_its_nominal_speed_has_right_centres_from_the_first_sample():
    period_ticks = round(1.1 * PERIOD_TICKS)
    frame = PairsSource(first_ticks=100_000).frame()
    frame.items["delta_ticks"][1:] = period_ticks
    _, events = run([frame])
    (got,) = samples(events)
    assert got.meter_ns[0] == pytest.approx((100_000 - 0.75 * period_ticks) * TICK_NS, abs=1000)


def test_a_bus_reading_between_shunt_conversions_is_no_loss():
    def frame(index, ticks, shunt_sum, flags):
        items = np.array([(0, 100), (1064, 100)], dtype=m.Shunts.ITEM)
        return m.Shunts(0, flags, index, ticks, shunt_sum, 0, 1260, 50, items)

    after_bus = 10_000 + 1064 + 2 * 1064 + 700
    messages = [frame(0, 10_000, 0, 0), frame(2, after_bus, 200, m.Flag.GAP_BEFORE)]
    _, events = run(messages, mode=m.Mode.SHUNTS)
    assert gaps(events) == []
    # The same pause without the flag is a missed conversion.
    messages[1:] = [frame(2, after_bus, 200, 0), frame(4, after_bus + 2 * 1064, 400, 0)]
    _, events = run(messages, mode=m.Mode.SHUNTS)
    assert [gap.lost_samples for gap in gaps(events)] == [2]


def test_slow_averages_come_one_to_a_frame_without_a_loss():
    def frame(index, ticks, shunt_sum):
        items = np.array([(0, 100)], dtype=m.Shunts.ITEM)
        return m.Shunts(0, 0, index, ticks, shunt_sum, 0, 1260, 50, items)

    messages = [frame(i, 136_200 * (i + 1), 100 * i) for i in range(10)]
    _, events = run(messages, mode=m.Mode.SHUNTS, shunt_adc=15)
    assert gaps(events) == []
    assert len(samples(events)) == 10


def test_wide_codes_and_their_64_bit_sums():
    def frame(index, ticks, shunt_sum):
        items = np.array([(0, -400_000, 25_600)], dtype=m.Wide.ITEM)
        return m.Wide(0, 0, index, ticks, shunt_sum % (1 << 64), 0, 0, items)

    count = 100_000
    messages = [frame(i, 2128 * (i + 1), -400_000 * i) for i in (0, count, count + 1, count + 2)]
    _, events = run(messages)
    (gap,) = gaps(events)
    assert gap.lost_samples == count - 1
    assert gap.charge_c == pytest.approx(-400_000 * AMPERE_PER_CODE * (count - 1) * PERIOD_NS * 1e-9, rel=1e-9)


def test_sums_that_disagree_with_the_samples_are_a_fault():
    source = PairsSource()
    first = source.frame()
    source.shunt_sum += 1
    part, events = run([first, source.frame()])
    assert [event.name for event in events if isinstance(event, FaultEvent)] == ["sum_mismatch"]
    assert part.losses({}).faults == {"sum_mismatch": 1}


def test_codes_at_the_end_of_the_range_are_clipped_one_by_one():
    source = PairsSource()
    codes = [1000, FULL_SCALE, -FULL_SCALE, FULL_SCALE - 1, 20_000]
    _, events = run([source.frame(codes, m.Flag.OVERFLOW)])
    assert list(samples(events)[0].clipped) == [False, True, True, False, False]


def test_a_bus_voltage_at_its_end_clips_the_sample():
    frame = PairsSource().frame()
    frame.items["bus"][3] = 8000
    _, events = run([frame])
    assert list(np.flatnonzero(samples(events)[0].clipped)) == [3]


def test_the_chips_own_overflow_bit_clips_a_frame_whose_codes_do_not_show_it():
    _, events = run([PairsSource().frame(flags=m.Flag.OVERFLOW)])
    assert samples(events)[0].clipped.all()


def test_clipped_conversions_of_a_lost_frame_are_known_from_the_next_one():
    source = PairsSource()
    frames = [source.frame(), source.frame([FULL_SCALE] * 5 + [100] * 11), source.frame(), source.frame()]
    _, events = run([frames[0], *frames[2:]])
    assert [(gap.lost_samples, gap.clipped_samples) for gap in gaps(events)] == [(16, 5)]


def test_clipped_conversions_lost_at_the_end_are_known_from_the_final_status():
    source = PairsSource()
    first = source.frame()
    source.frame([FULL_SCALE] * 16)
    item = np.array([(source.index, source.shunt_sum, source.bus_sum, source.clipped)], dtype=m.Status.ITEM)
    status = m.Status(m.Acquisition.IDLE, 2, source.ticks, 0, 0, 900, (0,) * 13, item)
    _, events = run([first, status])
    assert [(gap.lost_samples, gap.clipped_samples) for gap in gaps(events)] == [(16, 16)]


def test_a_frame_that_contradicts_time_is_refused_and_its_charge_recovered():
    source = PairsSource()
    frames = [source.frame() for _ in range(4)]
    frames[1] = m.Pairs(
        0,
        0,
        40_000_000,
        frames[1].first_end_ticks,
        frames[1].shunt_sum,
        frames[1].bus_sum,
        0,
        frames[1].items,
    )
    part, events = run(frames)
    assert part.losses({}).faults == {"frame_refused": 1}
    assert [gap.lost_samples for gap in gaps(events)] == [16]
    assert gaps(events)[0].charge_c is not None


def forged(frame, ahead=0, ticks_ahead=0):
    """The frame as damage may leave it, `ahead` conversions and ticks from where it belongs."""
    index, ticks = (
        (frame.first_index + ahead) & 0xFFFFFFFF,
        (frame.first_end_ticks + ticks_ahead) & 0xFFFFFFFF,
    )
    items = frame.items.copy()
    items["shunt"] = -7
    return m.Pairs(0, 0, index, ticks, frame.shunt_sum, frame.bus_sum, 0, items)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 9),
    st.one_of(st.integers(-300, 300), st.integers(-(1 << 31), (1 << 31) - 1)).filter(bool),
    st.one_of(st.none(), st.integers(-(1 << 31), (1 << 31) - 1).filter(lambda ticks: abs(ticks) > 1 << 20)),
    st.booleans(),
)
def test_one_forged_frame_that_is_not_the_next_costs_itself_alone(place, ahead, ticks_ahead, beside):
    """In the place of a right frame or beside it; its count, its time or both are wrong."""
    if ticks_ahead is None:
        ticks_ahead = ahead * PERIOD_TICKS
    source = PairsSource()
    messages = [source.frame() for _ in range(10)]
    frame = forged(messages[place], ahead, ticks_ahead)
    messages[place : place + (0 if beside else 1)] = [frame]
    item = np.array([(source.index, source.shunt_sum, source.bus_sum, 0)], dtype=m.Status.ITEM)
    part, events = run([*messages, m.Status(m.Acquisition.IDLE, 2, source.ticks, 0, 0, 900, (0,) * 13, item)])
    got = samples(events)
    currents_a = np.concatenate([one.current_a for one in got])
    assert currents_a.size == 160 - (0 if beside else 16)
    assert not np.any(currents_a < 0)
    assert bool(np.all(np.diff(np.concatenate([one.meter_ns for one in got])) == PERIOD_NS)) or not beside
    assert sum(gap.lost_samples for gap in gaps(events)) == (0 if beside else 16)
    assert part.losses({}).faults == {"frame_refused": 1}
    assert [event.name for event in events if isinstance(event, FaultEvent)] == ["frame_refused"]


@pytest.mark.parametrize("ahead", [1, 15, 16, 100, 255, 256])
@pytest.mark.parametrize("beside", [False, True])
def test_a_forged_frame_some_conversions_ahead_is_dropped_and_counted(ahead, beside):
    """It has the time that it claims to have passed, so that nothing in it contradicts what came before it."""
    source = PairsSource()
    frames = [source.frame() for _ in range(40)]
    got = [*frames[:20], forged(frames[20], ahead, ahead * PERIOD_TICKS), *frames[20 + (not beside) :]]
    part, events = run(got)
    assert sum(one.current_a.size for one in samples(events)) == (39 + beside) * 16
    assert sum(gap.lost_samples for gap in gaps(events)) == (not beside) * 16
    assert all(gap.charge_c is not None for gap in gaps(events))
    assert part.losses({}).faults == {"frame_refused": 1}
    assert part.losses({}).lost_samples == (not beside) * 16


def test_a_frame_that_nothing_bears_out_before_the_line_closes_is_counted():
    source = PairsSource()
    frames = [source.frame() for _ in range(3)]
    part, events = run([frames[0], frames[2]])
    assert sum(one.current_a.size for one in samples(events)) == 16
    assert part.losses({}).faults == {"frame_refused": 1}


@pytest.mark.parametrize("lost", [1, 2, 15, 16])
def test_a_true_gap_is_believed_with_the_next_frame_even_if_that_lost_some_before_it_too(lost):
    source = PairsSource()
    frames = [source.frame() for _ in range(60)]
    at = [0, 1, 2 + lost, 4 + lost, 5 + lost]
    part, events = run([frames[i] for i in at])
    assert [gap.lost_samples for gap in gaps(events)] == [lost * 16, 16]
    assert all(gap.charge_c is not None for gap in gaps(events))
    assert part.losses({}).faults == {}


@pytest.mark.parametrize("ahead", [100_000, -100_000])
def test_a_meter_that_goes_on_from_another_count_is_followed(ahead):
    source = PairsSource()
    before = [source.frame() for _ in range(10)]
    source.index += ahead
    after = [source.frame() for _ in range(5)]
    part, events = run([*before, *after])
    assert sum(one.current_a.size for one in samples(events)) == 15 * 16
    assert part.losses({}).faults == {"count_jump": 1}
    assert gaps(events) == []


def test_after_a_long_silence_the_gap_is_as_long_as_the_count_says():
    source = PairsSource()
    frames = [source.frame() for _ in range(1000)]
    part, events = run([*frames[:5], *frames[-5:]])
    assert [gap.lost_samples for gap in gaps(events)] == [990 * 16]
    assert gaps(events)[0].charge_c == pytest.approx(
        sum(source.codes[80:-80]) * AMPERE_PER_CODE * PERIOD_NS * 1e-9, rel=1e-9
    )
    assert part.losses({}).faults == {}


def test_last_frames_after_a_long_silence_are_borne_out_by_the_final_status():
    source = PairsSource()
    frames = [source.frame() for _ in range(100)]
    item = np.array([(source.index, source.shunt_sum, source.bus_sum, 0)], dtype=m.Status.ITEM)
    status = m.Status(m.Acquisition.IDLE, 2, source.ticks, 0, 0, 900, (0,) * 13, item)
    _, events = run([frames[0], frames[-1], status])
    assert sum(one.current_a.size for one in samples(events)) == 32
    assert [gap.lost_samples for gap in gaps(events)] == [98 * 16]


def test_a_forged_final_status_in_mid_run_ends_nothing():
    source = PairsSource()
    frames = [source.frame() for _ in range(4)]
    item = np.array([(5_000_000, 0, 0, 0)], dtype=m.Status.ITEM)
    status = m.Status(m.Acquisition.IDLE, 2, frames[2].first_end_ticks, 0, 0, 900, (0,) * 13, item)
    _, events = run([*frames[:2], status, *frames[2:]])
    assert sum(one.current_a.size for one in samples(events)) == 64
    assert gaps(events) == []
    assert [event.name for event in events if isinstance(event, FaultEvent)] == ["final_count_refused"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.booleans(), min_size=3, max_size=40),
    st.integers(0, 0xFFFFFFFF),
    st.integers(-32000, 32000),
    st.integers(0, 0xFFFFFFFF),
)
def test_what_arrived_and_what_was_recovered_add_up_to_all_the_charge(kept, first_ticks, level, shunt_sum):
    """For any lost frames, wherever ticks and sums wrap."""
    source = PairsSource(first_ticks=first_ticks)
    source.shunt_sum = shunt_sum
    part = assembler(anchor=first_ticks)
    part._conversions[0]._shunt_sum = shunt_sum  # as if so much had come before
    frames = [source.frame([level + i * (i % 3) % 700 for i in range(16)]) for _ in kept]
    events = []
    for keep, frame in zip([True, *kept[1:-1], True], frames, strict=True):
        if keep:
            events += part.take(frame, 0)
    sums = source.shunt_sum & 0xFFFFFFFF, source.bus_sum & 0xFFFFFFFF
    item = np.array([(source.index, *sums, 0)], dtype=m.Status.ITEM)
    status = m.Status(m.Acquisition.IDLE, 2, source.ticks & 0xFFFFFFFF, 0, 0, 900, (0,) * 13, item)
    events += part.take(status, 0)
    got = samples(events)
    arrived_c = sum(float(part_.current_a.sum()) for part_ in got) * PERIOD_NS * 1e-9
    recovered_c = sum(gap.charge_c for gap in gaps(events))
    whole_c = sum(source.codes) * AMPERE_PER_CODE * PERIOD_NS * 1e-9
    assert arrived_c + recovered_c == pytest.approx(whole_c, rel=1e-9, abs=1e-12)
    times = np.concatenate([part_.meter_ns for part_ in got])
    assert np.all(np.diff(times) > 0)
    assert sum(len(part_.meter_ns) for part_ in got) + sum(g.lost_samples for g in gaps(events)) == source.index


# Not random: 16 bits of CRC let one damaged frame in 65,536 through, by design.
@settings(derandomize=True, max_examples=300, deadline=None)
@given(damage_plans)
def test_damaged_bytes_never_give_a_wrong_sample_nor_a_wrong_charge(plan):
    source = PairsSource()
    frames = [source.frame() for _ in range(8)]
    stream = b"".join(encode_frame(frame, seq) for seq, frame in enumerate(frames))
    part, reader = assembler(), FrameReader()
    messages = [parse(frame) for frame in reader.feed(spoil(stream, plan) + b"\0")]
    events = [event for message in messages for event in part.take(message, 0)]
    known = part._conversions[0]._next_index
    (whole,) = samples(run([PairsSource().frame()])[1])
    first_ns = int(whole.meter_ns[0])
    for got in samples(events):
        first = round((int(got.meter_ns[0]) - first_ns) / PERIOD_NS)
        codes = np.rint(got.current_a / AMPERE_PER_CODE)
        assert list(codes) == source.codes[first : first + codes.size]
    arrived_c = sum(float(got.current_a.sum()) for got in samples(events)) * PERIOD_NS * 1e-9
    recovered_c = sum(gap.charge_c for gap in gaps(events))
    whole_c = sum(source.codes[:known]) * AMPERE_PER_CODE * PERIOD_NS * 1e-9
    assert arrived_c + recovered_c == pytest.approx(whole_c, rel=1e-9, abs=1e-15)


def edge(index, at, known=3):
    """Edge message `index` of edges at the times `at` [ticks, unwrapped]."""
    previous = [(at[index - 1 - i] & 0xFFFFFFFF, (index - 1 - i) % 2) for i in range(min(known, index, 3))]
    count = len(previous)
    previous += [(0, 0)] * (3 - count)
    ticks, levels = zip(*previous, strict=True)
    return m.Edge(index & 0xFFFF, at[index] & 0xFFFFFFFF, index % 2, count, ticks, levels)


def test_each_edge_comes_once_and_three_lost_frames_lose_none():
    at = [1000 * (i + 1) for i in range(12)]
    messages = [edge(i, at) for i in (0, 1, 1, 5, 6, 10, 11)]
    part, events = run(messages)
    edges = [event for event in events if isinstance(event, EdgeEvent)]
    assert [e.index for e in edges] == list(range(12))
    assert [e.meter_ns for e in edges] == [ticks * TICK_NS for ticks in at]
    assert [e.level for e in edges] == [i % 2 for i in range(12)]
    assert part.losses({}).lost_edges == 0


def test_edges_lost_beyond_the_repeats_are_counted():
    at = [1000 * (i + 1) for i in range(9)]
    part, events = run([edge(0, at), edge(8, at)])
    assert [event.index for event in events] == [0, 5, 6, 7, 8]
    assert part.losses({}).lost_edges == 4


def edges_of(events):
    return [event.index for event in events if isinstance(event, EdgeEvent)]


@pytest.mark.parametrize("ahead", [20, 1000, 32_000])
def test_one_forged_edge_far_ahead_costs_no_other_edge(ahead):
    at = [1000 * (i + 1) for i in range(9)]
    lie = m.Edge(4 + ahead, at[4], 0, 0, (0,) * 3, (0,) * 3)
    part, events = run([*(edge(i, at) for i in range(4)), lie, *(edge(i, at) for i in range(4, 9))])
    assert edges_of(events) == list(range(9))
    assert (part.losses({}).lost_edges, part.losses({}).faults) == (0, {"edge_refused": 1})


def test_many_lost_edges_are_believed_when_the_next_message_or_the_meters_count_agrees():
    at = [1000 * (i + 1) for i in range(40)]
    part, events = run([edge(0, at), edge(30, at)])
    assert edges_of(events) == [0]
    assert edges_of(part.take(edge(31, at), 0)) == [27, 28, 29, 30, 31]
    part, _ = run([edge(0, at), edge(30, at)])
    counted = m.Status(m.Acquisition.SAMPLING, 2, 50_000, 0, 31, 900, (0,) * 13, no_sensors())
    assert edges_of(part.take(counted, 0)) == [27, 28, 29, 30]


def test_a_last_edge_that_never_came_is_known_from_the_status():
    at = [1000, 2000]
    part, _ = run([edge(0, at), m.Status(m.Acquisition.SAMPLING, 2, 3000, 0, 2, 900, (0,) * 13, no_sensors())])
    assert part.losses({}).lost_edges == 1
    part.take(edge(1, at), 0)
    assert part.losses({}).lost_edges == 0


def no_sensors():
    return np.zeros(0, dtype=m.Status.ITEM)


def test_edges_keep_their_order_over_wraps_of_ticks_and_index():
    step = 3_000_000_000  # 25 minutes: more than half a wrap
    at = [step * (i + 1) for i in range(4)]
    part = assembler(anchor=0)
    events = part.take(edge(3, at), 0)
    assert [b.meter_ns - a.meter_ns for a, b in itertools.pairwise(events)] == [step * TICK_NS] * 3
    part._next_edge = 65_535
    assert [event.index for event in part.take(m.Edge(65_535, 5, 1, 0, (0,) * 3, (0,) * 3), 0)] == [65_535]
    assert [event.index for event in part.take(m.Edge(0, 9, 0, 1, (5, 0, 0), (1, 0, 0)), 0)] == [65_536]


def test_a_round_trip_has_both_clocks_and_only_asked_for_replies_count():
    part = assembler(anchor=(3 << 32) + 100)
    part.requested(9, 1_000)
    assert part.take(m.ClockReply(8, 200, 300), 5_000) == []
    (exchange,) = part.take(m.ClockReply(9, 200, 300), 5_000)
    base = (3 << 32) * TICK_NS
    assert (exchange.sent_ns, exchange.received_ns) == (1_000, 5_000)
    assert (exchange.far_received_ns - base, exchange.far_sent_ns - base) == (100_000, 150_000)
    assert part.take(m.ClockReply(9, 200, 300), 6_000) == []


def test_faults_of_the_meter_reach_the_losses_by_name():
    part, events = run([m.FaultMessage(m.Fault.I2C_NACK, 0, 3, 2_000_000), m.FaultMessage(99, 255, 1, 0)])
    assert [(event.name, event.sensor) for event in events] == [("i2c_nack", 0), ("fault_99", None)]
    assert events[0].meter_ns == 1_000_000_000
    assert part.losses({}).faults == {"i2c_nack": 3, "fault_99": 1}


@given(st.integers(0, 1 << 40), st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_difference_of_wrapping_counters_is_exact_within_half_a_wrap(start, step):
    assert signed_difference((start + step) % (1 << 32), start % (1 << 32), 32) == step


def test_an_edge_of_no_level_is_refused_and_counted():
    assembler = Assembler(500, {}, 0)
    message = m.Edge(index=0, ticks=10, level=182, previous_count=0, previous_ticks=(0, 0, 0), previous_level=(0, 0, 0))
    assert assembler.take(message, 0) == []
    assert assembler.losses({}).faults["edge_refused"] == 1
