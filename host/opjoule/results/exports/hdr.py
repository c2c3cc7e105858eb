"""Latencies as HdrHistogram logs in a folder: a file for each kind of operation, a line for each repeat.

Sources: HdrHistogram: EncodableHistogram, Histogram (V2 encoding, compressed), HistogramLogWriter (lines of a log).
"""

import base64
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.files import rewriting
from opjoule.results.run import OpenedRun
from opjoule.runs.record.phases import Role

_DIGITS: Final = 3
_HALF_BITS: Final = 10
"""Binary logarithm of the number of classes in an octave that 3 decimal digits need: 1,024."""
_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314
_HIGHEST_NS: Final = 3_600_000_000_000
_HEAD: Final = (
    "#[Latencies in nanoseconds of the operations that succeeded{mark}]\n#[Histogram log format version 1.2]\n"
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
)


def write(run: OpenedRun, folder: Path) -> Iterator[str]:
    """Writes a log for each kind of operation, a simulated run's with SIMULATED in its name; yields a line per file."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = "-SIMULATED" if run.simulated else ""
    operations, phases = run.operations, run.answer.record.run.phases
    board_ns, took_ns, kind = (operations[name] for name in ("board_ns", "duration_ns", "kind"))
    works = [phase for phase in phases if phase.role is Role.WORK]
    for name in np.unique(kind[operations["ok"]]).tolist():
        path, lines = folder / f"{name}{mark}.hdr", []
        for phase in works:
            inside = (board_ns >= phase.start_board_ns) & (board_ns < phase.end_board_ns)
            chosen = took_ns[inside & operations["ok"] & (kind == name)]
            if chosen.size:
                start_s = (phase.start_board_ns - works[0].start_board_ns) * 1e-9
                lines.append(f"{start_s:.3f},{phase.duration_s:.3f},{chosen.max() * 1e-6:.3f},{_encoded(chosen)}\n")
        if lines:
            with rewriting(path) as file:
                file.write("".join([_HEAD.format(mark=", SIMULATED" if mark else ""), *lines]).encode())
            yield f"{path}: {len(lines)} lines"


def _encoded(values_ns: npt.NDArray[np.int64]) -> str:
    """A histogram of values in base64."""
    counts = np.bincount(_classes(values_ns)).tolist()
    payload, at = bytearray(), 0
    while at < len(counts):
        zeros = 0
        while counts[at + zeros] == 0:  # the last count is never 0
            zeros += 1
        payload += _zigzag(-zeros if zeros > 1 else counts[at])
        at += max(zeros, 1)
    head = struct.pack(">iiiiqqd", _COOKIE, len(payload), 0, _DIGITS, 1, _HIGHEST_NS, 1.0)
    packed = zlib.compress(head + payload)
    return base64.b64encode(struct.pack(">ii", _COMPRESSED_COOKIE, len(packed)) + packed).decode()


def _classes(values_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Index of the class of each value; a class is at most 1/1,024 of its value wide."""
    values = np.clip(values_ns, 0, _HIGHEST_NS)
    octave = np.maximum(np.frexp(values.astype(np.float64))[1] - (_HALF_BITS + 1), 0).astype(np.int64)
    return np.asarray((octave << _HALF_BITS) + (values >> octave), dtype=np.int64)


def _zigzag(number: int) -> bytes:
    """A signed number in ZigZag LEB128."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])
