"""Frames: golden bytes, round trips, and every kind of damage."""

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.meters import messages as m
from opjoule.meters.serial import wire
from opjoule.meters.serial.assembler import parse
from opjoule.meters.serial.wire import WRAP, TickUnwrapper
from software_meter import PairsSource, damage_plans, identity, spoil

PROTOCOL = Path(__file__).parents[3] / "firmware" / "protocol"
GOLDEN = tomllib.loads((PROTOCOL / "golden" / "frames.toml").read_text())["frame"]
CLASSES = {kind.__name__.removesuffix("Message").lower(): kind for kind in m.BY_TYPE.values()}


def golden_message(frame):
    kind = CLASSES[frame["message"].replace("_", "")]
    fields = {
        name: tuple(value) if isinstance(value, list) else value for name, value in frame.get("fields", {}).items()
    }
    if hasattr(kind, "ITEM"):
        fields["items"] = np.array([tuple(item) for item in frame["items"]], dtype=kind.ITEM)
    return kind(**fields)


def golden_bytes(name):
    return next(bytes.fromhex(frame["bytes"]) for frame in GOLDEN if frame["name"] == name)


@pytest.mark.parametrize("frame", GOLDEN, ids=lambda frame: frame["name"])
def test_a_golden_frame_is_encoded_to_its_bytes(frame):
    assert wire.encode_frame(golden_message(frame), frame["seq"]).hex(" ") == frame["bytes"]


@pytest.mark.parametrize("frame", GOLDEN, ids=lambda frame: frame["name"])
def test_a_golden_frame_is_decoded_to_its_fields(frame):
    (decoded,) = wire.FrameReader().feed(bytes.fromhex(frame["bytes"]))
    message = parse(decoded)
    expected = golden_message(frame)
    assert type(message) is type(expected)
    assert decoded.seq == frame["seq"]
    for name in frame.get("fields", {}):
        assert getattr(message, name) == getattr(expected, name)
    if hasattr(message, "items"):
        assert np.array_equal(message.items, expected.items)


def test_every_message_has_a_golden_frame():
    assert {CLASSES[frame["message"].replace("_", "")] for frame in GOLDEN} == set(m.BY_TYPE.values())


def test_generated_files_are_current():
    check = subprocess.run(
        [sys.executable, PROTOCOL / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stderr


def test_crc_gives_its_catalogue_check_value():
    assert wire.crc16(b"123456789") == 0x29B1


@given(st.binary(max_size=700))
def test_cobs_has_no_zero_and_comes_back(data):
    stuffed = wire.cobs_encode(data)
    assert 0 not in stuffed
    assert wire.cobs_decode(stuffed) == data
    assert len(stuffed) <= len(data) + 1 + len(data) // 254


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused_but_never_crash(data):
    reader = wire.FrameReader()
    for frame in reader.feed(data + b"\0"):
        parse(frame)


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(1, 9))
def test_frames_come_whole_however_the_bytes_are_cut(cuts, count):
    source = PairsSource()
    sent = [wire.encode_frame(source.frame(), seq) for seq in range(count)]
    stream = b"".join(sent)
    places = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    reader = wire.FrameReader()
    frames = [frame for a, b in itertools.pairwise(places) for frame in reader.feed(stream[a:b])]
    assert [frame.seq for frame in frames] == list(range(count))
    assert reader.counts.lost_frames == 0


# Not random: 16 bits of CRC let one damaged frame in 65,536 through, by design.
@settings(derandomize=True, max_examples=300)
@given(damage_plans)
def test_damaged_bytes_give_only_frames_that_were_sent_each_once(plan):
    source = PairsSource()
    sent = [source.frame() for _ in range(8)]
    stream = b"".join(wire.encode_frame(frame, seq) for seq, frame in enumerate(sent))
    reader = wire.FrameReader()
    got = reader.feed(spoil(stream, plan) + b"\0")
    assert len({frame.seq for frame in got}) == len(got)
    for frame in got:
        assert frame.body == sent[frame.seq].pack()


def test_losses_are_counted_by_cause():
    source = PairsSource()
    frames = [wire.encode_frame(source.frame(), seq) for seq in range(6)]
    frames[1] = b"\x09" + frames[1][1:]  # code byte points elsewhere
    frames[2] = frames[2][:40] + bytes([frames[2][40] ^ 1]) + frames[2][41:]
    frames[3] = b"\x02\x05\x00"
    reader = wire.FrameReader()
    got = reader.feed(b"".join(frames))
    assert [frame.seq for frame in got] == [0, 4, 5]
    counts = reader.counts
    assert counts.bad_cobs + counts.bad_crc == 2
    assert (counts.bad_length, counts.lost_frames, counts.frames) == (1, 3, 3)


def test_the_sequence_number_wraps_without_a_loss():
    reader = wire.FrameReader()
    for seq in (0xFFFFFFFE, 0xFFFFFFFF, 0, 1):
        reader.feed(wire.encode_frame(m.Clock(seq), seq))
    assert (reader.counts.lost_frames, reader.counts.restarts) == (0, 0)


def test_a_sequence_that_goes_back_is_a_restart_not_a_loss():
    reader = wire.FrameReader()
    reader.feed(wire.encode_frame(m.Clock(1), 5000) + wire.encode_frame(identity(), 0))
    assert (reader.counts.lost_frames, reader.counts.restarts) == (0, 1)


def test_bytes_before_the_first_delimiter_are_no_fault():
    whole = golden_bytes("pairs_three")
    reader = wire.FrameReader()
    assert len(reader.feed(whole[20:] + whole)) == 1
    assert reader.counts.bad_cobs + reader.counts.bad_crc + reader.counts.bad_length == 0


def test_endless_noise_without_a_delimiter_stays_bounded():
    reader = wire.FrameReader()
    reader.feed(golden_bytes("clock"))
    for _ in range(100):
        reader.feed(b"\x55" * 1000)
    assert len(reader._rest) <= 3 * m.MAX_FRAME_BYTES
    reader.feed(b"\0")
    assert len(reader.feed(golden_bytes("start"))) == 1


def test_a_message_with_more_items_than_a_frame_holds_is_refused():
    with pytest.raises(wire.WireError):
        wire.encode_frame(PairsSource(count=60).frame(), 0)


def test_the_version_is_read_from_an_identity_of_any_layout():
    frame = wire.Frame(m.Identity.TYPE, 0, (7).to_bytes(2, "little") + b"something new")
    assert wire.protocol_version(frame) == 7
    assert parse(frame) is None


def test_the_worked_example_of_the_documentation_is_the_golden_frame():
    page = (PROTOCOL.parents[1] / "docs" / "reference" / "wire-format.md").read_text()
    assert golden_bytes("pairs_three").hex(" ") in page


def test_the_documented_sizes_are_those_of_the_messages():
    page = (PROTOCOL.parents[1] / "docs" / "reference" / "wire-format.md").read_text()
    for number, kind in m.BY_TYPE.items():
        item = getattr(kind, "ITEM", None)
        room = m.MAX_FRAME_BYTES - wire.HEADER_BYTES - wire.CRC_BYTES - kind.FIELDS.size
        last = f"{item.itemsize} | {room // item.itemsize}" if item is not None else " | "
        assert re.search(rf"\| 0x{number:02x} \| \w+ \| {kind.FIELDS.size} \| ?{re.escape(last)} ?\|", page), kind


@given(st.integers(0, 2**40), st.lists(st.integers(0, WRAP // 4), max_size=50))
@settings(max_examples=100, deadline=None)
def test_unwrapping_undoes_the_wrap(start, steps):
    true = start + np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
    wrapped = (true % WRAP).astype(np.uint32)
    one_by_one = TickUnwrapper()
    single = [one_by_one.unwrap(int(ticks)) for ticks in wrapped]
    assert (np.array(single) - single[0]).tolist() == (true - true[0]).tolist()


def test_an_older_count_is_placed_before_a_newer_one():
    unwrapper = TickUnwrapper()
    unwrapper.unwrap(WRAP - 10)
    assert unwrapper.unwrap(5) == WRAP + 5
    assert unwrapper.unwrap(WRAP - 3) == WRAP - 3
    assert unwrapper.unwrap(6, near_ticks=7 * WRAP) == 7 * WRAP + 6


def test_a_forged_count_leads_no_later_one_astray():
    unwrapper = TickUnwrapper()
    for turn in range(6):
        assert unwrapper.unwrap(1000 + turn) == 1000 + turn
        unwrapper.unwrap(WRAP // 2 + (1002 if turn % 2 else 900))


def test_after_a_silence_of_a_third_of_a_wrap_counts_go_on_from_there():
    unwrapper = TickUnwrapper()
    true = [i * (WRAP // 3) + part for i in range(9) for part in (10, 20)]
    assert [unwrapper.unwrap(count % WRAP) for count in true] == true
