"""The Python parsers that read bytes from outside. Each one accepts any input and parses it or refuses it in one line.

A parser is a function of bytes. It may raise OpJouleError, which is one line for a user; any other exception is a find.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import operator
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from opjoule.base.errors import MeterFault, OpJouleError
from opjoule.boards.probe import probe_line
from opjoule.boards.rig import read_rig
from opjoule.cli.campaign.file import CampaignFile
from opjoule.energy.calibration.calibration_file import read_calibration
from opjoule.energy.operations.board_files import PhaseMark, read_events, read_system
from opjoule.energy.operations.oplog import BLOCK_HEADER, FILE_HEADER, read_operation_log
from opjoule.energy.operations.tables import SYSTEM, read_operations
from opjoule.energy.trace.imported.trace_file import read_trace_file
from opjoule.energy.trace.journal import read_trace
from opjoule.meters import messages as m
from opjoule.meters.chips import INA219, SensorSettings, code_ends
from opjoule.meters.interface import GapEvent, MeterEvent, Samples
from opjoule.meters.monsoon.assembler import Calibration, MonsoonAssembler, whole_packets
from opjoule.meters.monsoon.models import HVPM
from opjoule.meters.powersensor3 import Pair, PowerSensor3Assembler, SensorSetting
from opjoule.meters.ppk2 import Modifiers, Ppk2Assembler
from opjoule.meters.serial.assembler import Assembler, parse
from opjoule.meters.serial.conversions import ConversionAssembler
from opjoule.meters.serial.wire import FrameReader, cobs_encode, crc16
from opjoule.meters.smartpower3 import SmartPower3Assembler
from opjoule.runs.record.result import read_result
from opjoule.runs.record.run_record import DIGEST, RunRecord, _digest, reading

MEMORY = Path(os.environ.get("OPJOULE_MEMORY", "/dev/shm"))
FOLDER = Path(tempfile.mkdtemp(prefix="opjoule-fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
"""Folder for inputs that are files; in memory if the system has such a folder."""
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
TICK_NS = 500
UNIT: dict[int, int] = {}
"""Memory of a Monsoon; 1000 at every address that is not listed."""
PAIR = Pair(
    0, SensorSetting("MLX10", "", 1.65, 0.12, in_use=True), SensorSetting("voltage", "", 0.0, 0.09, in_use=True)
)
SYSTEM_HEADER = ",".join(SYSTEM.names).encode() + b"\n"


def _file(name: str, data: bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


def check(holds: bool, what: str) -> None:
    """Raises AssertionError if a condition does not hold that must hold for every input."""
    if not holds:
        raise AssertionError(what)


def _check_order(events: list[MeterEvent]) -> None:
    """Checks that samples and gaps follow each other without overlap, as a trace requires."""
    last_ns = -(1 << 62)
    for event in events:
        if isinstance(event, GapEvent):
            check(event.gap.start_meter_ns >= last_ns, "a gap begins after what is before it")
            last_ns = event.gap.end_meter_ns
        elif isinstance(event, Samples):
            check(int(event.meter_ns[0]) >= last_ns, "samples begin after what is before them")
            check(bool(np.all(np.diff(event.meter_ns) > 0)), "samples are in the order of their times")
            last_ns = int(event.meter_ns[-1])


def wire(data: bytes) -> None:
    """Messages of a meter: each piece of the input as it is, and as a frame with the right number and CRC."""
    chosen = SensorSettings(mode=m.Mode.PAIRS, shunt_adc=3)
    ends = code_ends(m.ControllerKind.ATMEGA328P, INA219, chosen)
    conversions = ConversionAssembler(0, INA219.times(chosen), INA219.scale(), TICK_NS, ends)
    assembler, reader, events = Assembler(TICK_NS, {0: conversions}, 0), FrameReader(), []
    for seq, part in enumerate(data.split(b"\0")[:64]):
        frames = reader.feed(part + b"\0")
        if len(part) > 1:
            frames += reader.feed(_sealed(part, seq))
        for frame in frames:
            message = parse(frame)
            if message is not None:
                events += assembler.take(message, 0)
    _check_order(events)


def _sealed(content: bytes, seq: int) -> bytes:
    """A frame of this type and body with the right number and CRC, which random bytes would never have."""
    content = (content[:1] + seq.to_bytes(4, "little") + content[1:])[: m.MAX_FRAME_BYTES - 2]
    return cobs_encode(content + crc16(content).to_bytes(2, "little")) + b"\0"


def monsoon(data: bytes) -> None:
    """Packets of a Monsoon, each of 64 bytes."""
    scale = HVPM.channel_scale("main", lambda opcode, length, signed: UNIT.get(opcode, 1000))
    taker, events, arrival_ns = MonsoonAssembler(Calibration(HVPM, "main", scale)), [], 10**12
    for at in range(0, len(data), 640):
        packets = whole_packets(data[at : at + 640])
        count = len(packets) // 64
        arrival_ns += count * 600_000
        events += taker.take(packets, np.full(count, arrival_ns, np.int64))
    _check_order(events)


def ppk2(data: bytes) -> None:
    """Samples of a PPK2 in at most 32 pieces; the first byte is the length of a piece, unless that is too short."""
    taker, events = Ppk2Assembler(Modifiers.parse(""), 5.0), []
    size = max(1, data[0] if data else 1, len(data) // 32)
    for number, at in enumerate(range(1, len(data), size)):
        events += taker.take(data[at : at + size], 10**12 + number * 2500)
    _check_order(events)


def smartpower3(data: bytes) -> None:
    """Text of a SmartPower3: the input as it is, and its pieces as lines with the right check sums."""
    pieces = (data[at : at + 74] for at in range(0, min(len(data), 74 * 16), 74))
    sealed = b"".join(
        piece + b"%02x,%02x\r\n" % (-sum(piece) & 0xFF, functools.reduce(operator.xor, piece)) for piece in pieces
    )
    for text in (data, sealed):
        taker, events = SmartPower3Assembler(0, 5), []
        with contextlib.suppress(MeterFault):
            for number, at in enumerate(range(0, len(text), 100)):
                events += taker.take(text[at : at + 100], 10**12 + number * 5_000_000)
        _check_order(events)


def powersensor3(data: bytes) -> None:
    """Packets of a PowerSensor3 in at most 32 pieces, and its settings."""
    for at in range(0, min(len(data) - 40, 8 * 41), 41):
        SensorSetting.parse(data[at : at + 41])
    taker, events = PowerSensor3Assembler(PAIR), []
    size = max(1, data[0] if data else 1, len(data) // 32)
    for number, at in enumerate(range(1, len(data), size)):
        events += taker.take(data[at : at + size], 10**12 + number * 2_500_000)
    _check_order(events)


def ppk2_calibration(data: bytes) -> None:
    """The calibration values that a PPK2 sends."""
    values = Modifiers.parse(data.decode(errors="replace"))
    check(not bool(np.any(values.resistor_ohm == 0)), "no resistor is 0 ohm")


def oplog(data: bytes) -> None:
    """An operation log: the input as it is, and its pieces as blocks with the right checksums."""
    for content in (data, _sealed_log(data)):
        with contextlib.suppress(OpJouleError):
            _check_log(content)


def _check_log(content: bytes) -> None:
    rows = read_operation_log(_file("loader.oplog", content), strict=False).operations
    check(len(rows) <= len(content), "an operation takes three bytes at least")
    check(bool(np.all(rows.duration_ns >= 0)), "no operation ends before it starts")
    check(bool(np.all(np.diff(rows.board_ns) >= 0)), "operations are in the order of their starts")


def _sealed_log(data: bytes) -> bytes:
    """A log whose blocks contain the pieces of `data`; a piece's first two bytes claim a number of records."""
    head = bytearray(FILE_HEADER.pack(b"OPJLOG1\n", 2, 1 << 16, 5, 0, 0))
    head[28:32] = struct.pack("<I", zlib.crc32(head))
    out, base = bytes(head), 1000
    for number, part in enumerate(data.split(b"\xff\xff")[:16]):
        records, payload = int.from_bytes(part[:2], "little"), part[2:]
        fields = (0x4B4C4250, 0, 0, records, len(payload), base, zlib.crc32(payload), 0, number)
        block = bytearray(BLOCK_HEADER.pack(*fields))
        block[28:32] = struct.pack("<I", zlib.crc32(block))
        out += bytes(block) + payload
    return out


def board_events(data: bytes) -> None:
    """A board's events.jsonl."""
    read_events(_file("board.events.jsonl", data))


def board_samples(data: bytes) -> None:
    """A board's system.csv."""
    read_system(_file("board.system.csv", SYSTEM_HEADER + data))


def probe_answers(data: bytes) -> None:
    """Lines that a probe sends."""
    for line in data.split(b"\n"):
        said = probe_line(line)
        if isinstance(said, PhaseMark):
            check(abs(said.board_ns) <= 1 << 63, "a mark's time fits a clock")


def rig_toml(data: bytes) -> None:
    """rig.toml."""
    read_rig(_file("rig.toml", data))


def calibration_toml(data: bytes) -> None:
    """A sensor's calibration file."""
    read_calibration(_file("sensor.toml", data))


def campaign_toml(data: bytes) -> None:
    """A campaign file."""
    CampaignFile.read(_file("campaign.toml", data))


def csv_import(data: bytes) -> None:
    """A trace that another program exported as CSV."""
    trace = read_trace_file(_file("trace.csv", data), {}, 5.0)
    check(bool(np.all(np.diff(trace.meter_ns) >= 0)), "time does not go back")
    rows = trace.meter_ns.size
    for number, part in enumerate(trace.parts()):
        check(number <= 2 * rows, "there are no more parts than rows and gaps between them")
        if isinstance(part, slice):
            check(0 <= part.start < part.stop <= rows, "a part lies in the trace")


def run_json(data: bytes) -> None:
    """run.json, as it is and with the right checksum."""
    for content in (data, _with_digest(data)):
        with contextlib.suppress(OpJouleError), reading(FOLDER):
            RunRecord.open(_file("run.json", content).parent)


def _with_digest(data: bytes) -> bytes:
    try:
        contents = json.loads(data)
        if isinstance(contents, dict):
            contents[DIGEST] = _digest(contents)
            return json.dumps(contents).encode()
    except (ValueError, RecursionError):
        pass
    return data


def result_json(data: bytes) -> None:
    """result.json."""
    _file("result.json", data)
    read_result(FOLDER)


def power_parquet(data: bytes) -> None:
    """power.parquet."""
    folder = FOLDER / "parquet"
    folder.mkdir(exist_ok=True)
    (folder / "power.parquet").write_bytes(data)
    read_trace(folder)


def operations_parquet(data: bytes) -> None:
    """operations.parquet."""
    read_operations(_file("operations.parquet", data))


def trace_stream(data: bytes) -> None:
    """raw/power.arrows, the trace of a measurement that is running or was killed."""
    folder = FOLDER / "stream" / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "power.arrows").write_bytes(data)
    read_trace(folder.parent)


PARSERS: dict[str, Callable[[bytes], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        *(
            wire,
            monsoon,
            ppk2,
            ppk2_calibration,
            smartpower3,
            powersensor3,
            oplog,
            board_events,
            board_samples,
            probe_answers,
        ),
        *(rig_toml, calibration_toml, campaign_toml, csv_import, run_json, result_json),
        *(power_parquet, operations_parquet, trace_stream),
    )
}


def feed(name: str, data: bytes) -> None:
    """Gives a parser an input; returns if it parses or refuses it. Raises: any other exception of the parser."""
    with contextlib.suppress(OpJouleError):
        PARSERS[name](data)
