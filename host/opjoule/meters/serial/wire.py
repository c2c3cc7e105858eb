"""Frames on the serial line: encodes frames, decodes received bytes, and follows counters that wrap.

Frame = COBS( type u8 | seq u32 | fields | crc16 ) 0x00; the byte grammar is in docs/reference/wire-format.md.
"""

import binascii
from collections import deque
from dataclasses import dataclass

from opjoule.meters.messages import MAX_FRAME_BYTES, EndOfInput, Identity, Message

HEADER_BYTES = 5
CRC_BYTES = 2
_SEQ_SPAN = 1 << 32
_REMEMBERED_FRAMES = 64


class WireError(ValueError):
    """Bytes that are not a valid frame; `count`: name of the count in LinkCounts that it increases."""

    def __init__(self, count: str, why: str) -> None:
        super().__init__(why)
        self.count = count


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame with a valid CRC; the fields are still packed."""

    type: int
    seq: int
    body: bytes


@dataclass(slots=True)
class LinkCounts:
    """Counts of the line since it was opened."""

    frames: int = 0
    bad_cobs: int = 0
    bad_crc: int = 0
    bad_length: int = 0
    lost_frames: int = 0
    """numbers missing from the sequence, including bad frames"""
    repeated_frames: int = 0
    """frames that came twice; the second one was discarded"""
    restarts: int = 0
    """times that the sequence went back, because the meter was reset"""


def crc16(data: bytes) -> int:
    """CRC-16/IBM-3740 (poly 0x1021, init 0xFFFF), check value 0x29B1."""
    return binascii.crc_hqx(data, 0xFFFF)


def cobs_encode(data: bytes) -> bytes:
    """`data` encoded without zeros; the delimiter is not added.

    Source: Cheshire and Baker, Consistent Overhead Byte Stuffing, IEEE/ACM Trans. Networking 7(2), 1999.
    """
    out = bytearray()
    for part in data.split(b"\0"):
        block = part
        while len(block) >= 254:
            out += b"\xff" + block[:254]
            block = block[254:]
        out += bytes([len(block) + 1]) + block
    return bytes(out)


def cobs_decode(data: bytes) -> bytes:
    """The bytes before `cobs_encode`. Raises: WireError."""
    out = bytearray()
    at, end = 0, len(data)
    while at < end:
        code = data[at]
        after = at + code
        if code == 0 or after > end:
            raise WireError("bad_cobs", f"COBS code {code} at byte {at} of {end}")
        out += data[at + 1 : after]
        at = after
        if code != 0xFF and at < end:
            out.append(0)
    return bytes(out)


def encode_frame(message: Message, seq: int) -> bytes:
    """The message as sent, with its delimiter. Raises: WireError: more items than fit into a frame."""
    content = bytes([message.TYPE]) + (seq % _SEQ_SPAN).to_bytes(4, "little") + message.pack()
    content += crc16(content).to_bytes(CRC_BYTES, "little")
    if len(content) > MAX_FRAME_BYTES:
        raise WireError("bad_length", f"a frame of {len(content)} bytes, at most {MAX_FRAME_BYTES}")
    return cobs_encode(content) + b"\0"


def decode_frame(stuffed: bytes) -> Frame:
    """One frame from the bytes between two delimiters. Raises: WireError."""
    content = cobs_decode(stuffed)
    if not HEADER_BYTES + CRC_BYTES <= len(content) <= MAX_FRAME_BYTES:
        raise WireError("bad_length", f"a frame of {len(content)} bytes")
    if crc16(content[:-CRC_BYTES]) != int.from_bytes(content[-CRC_BYTES:], "little"):
        raise WireError("bad_crc", "CRC does not match")
    return Frame(content[0], int.from_bytes(content[1:5], "little"), content[HEADER_BYTES:-CRC_BYTES])


class FrameReader:
    """Splits the byte stream into frames. Damaged frames are dropped and counted; decoding resumes after the next 0x00.

    Bytes before the first delimiter or valid frame are not counted, because the port may open in mid-frame.
    """

    def __init__(self) -> None:
        self.counts = LinkCounts()
        self._rest = b""
        self._in_step = False
        self._expected_seq: int | None = None
        self._recent: deque[bytes] = deque(maxlen=_REMEMBERED_FRAMES)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes, in order; a repeated frame is returned once."""
        *chunks, self._rest = (self._rest + data).split(b"\0")
        frames = [frame for chunk in chunks if chunk and (frame := self._take(chunk)) is not None]
        if len(self._rest) > 2 * MAX_FRAME_BYTES:
            # No delimiter for longer than any frame: discard, so that noise does not fill the memory.
            self.counts.bad_length += self._in_step
            self._rest = self._rest[-MAX_FRAME_BYTES:]
        return frames

    def _take(self, chunk: bytes) -> Frame | None:
        try:
            frame = decode_frame(chunk)
        except WireError as fault:
            if self._in_step:
                setattr(self.counts, fault.count, getattr(self.counts, fault.count) + 1)
            self._in_step = True
            return None
        self._in_step = True
        if chunk in self._recent:
            self.counts.repeated_frames += 1
            return None
        self._recent.append(chunk)
        self.counts.frames += 1
        if frame.type != EndOfInput.TYPE:
            self._follow(frame)
        return frame

    def _follow(self, frame: Frame) -> None:
        """Compares the frame's sequence number with the expected one."""
        if self._expected_seq is not None:
            ahead = (frame.seq - self._expected_seq) % _SEQ_SPAN
            if ahead < _SEQ_SPAN // 2:
                self.counts.lost_frames += ahead
            else:
                self.counts.restarts += 1
        self._expected_seq = (frame.seq + 1) % _SEQ_SPAN


def protocol_version(frame: Frame) -> int | None:
    """The version in an identity frame, whatever the rest of its layout; None for other frames."""
    if frame.type != Identity.TYPE or len(frame.body) < 2:
        return None
    return int.from_bytes(frame.body[:2], "little")


WRAP = 1 << 32


def signed_difference(later: int, earlier: int, bits: int) -> int:
    """`later - earlier` of counters that wrap at 2^bits, as the smallest difference; negative if `later` is older."""
    span = 1 << bits
    return (later - earlier + span // 2) % span - span // 2


class TickUnwrapper:
    """Converts wrapping u32 ticks to positions on an unlimited tick axis.

    A count is placed within half a wrap (17.9 min at 2 MHz) of the preceding ones, so that slightly older counts (an
    edge reported after a newer sample) are correct. A count more than a quarter of a wrap away, for example a forged
    one, affects later ones only if the next count confirms it. Across a longer silence pass `near_ticks`.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self._doubted: int | None = None

    def unwrap(self, ticks: int, near_ticks: int | None = None) -> int:
        """Unwrapped ticks of one count from 0 to 2^32 - 1; `near_ticks`: its expected place on the unwrapped axis."""
        reference = self._last if near_ticks is None else near_ticks
        placed = ticks if reference is None else reference + signed_difference(ticks, reference, 32)
        known = [place for place in (self._last, self._doubted) if place is not None]
        if near_ticks is not None or any(abs(placed - place) <= WRAP // 4 for place in known):
            self._last, self._doubted = placed, None
        elif self._last is None:
            self._last = placed
        else:
            self._doubted = placed
        return placed
