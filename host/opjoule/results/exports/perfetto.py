"""Phases, operations, background work, power and counters on one time axis: a file for https://ui.perfetto.dev.

The file is a sequence of TracePacket messages in protobuf's wire format; this module encodes the few fields it uses.
Sources: https://perfetto.dev/docs/reference/synthetic-track-event (tracks, slices, counters), Perfetto's
protos/perfetto/trace/ (field numbers), https://protobuf.dev/programming-guides/encoding/ (wire format).
"""

import heapq
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import RecordFault
from opjoule.base.files import rewriting
from opjoule.energy.operations.operation_table import ACTIVITIES
from opjoule.results.recorded import system_track
from opjoule.results.run import OpenedRun
from opjoule.results.tracks import SampleParts, sampled_track

MOST: Final = 200_000
"""Most power samples and operations that are written, unless all are requested."""
_SEQUENCE: Final = 1
_PROCESS: Final = 1
"""Track of the whole run; it is the parent of all others."""
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_COUNTERS: Final = {
    "process_cores": ("busy cores, work", "cores"),
    "board_cores": ("busy cores, board", "cores"),
    "written_mb_per_s": ("written to the medium", "MB/s"),
    "read_mb_per_s": ("read from the medium", "MB/s"),
    "dirty_mb": ("dirty pages", "MB"),
}
Stretches = Iterable[tuple[float, float, str]]
"""Start [s], end [s], name."""


def write(run: OpenedRun, path: Path, most: int | None = MOST) -> Iterator[str]:
    """Writes the trace file completely or not at all; yields a line for each part of the run that the record lacks.

    `most`: largest number of power samples and of operations; None: all of them. More samples are combined to mean,
    least and greatest; of more operations only every n-th is written. The names of the tracks say so.
    """
    with rewriting(path) as file:
        writer = _Writer(file, run.title)
        lacking = []
        for add in (_warnings, _phases, _power, _operations, _events, _counters):
            try:
                add(run, writer, most)
            except RecordFault as fault:
                lacking.append(str(fault))
    yield from (f"not in it: {line}" for line in dict.fromkeys(lacking))
    yield f"{path}: open it in https://ui.perfetto.dev"


class _Writer:
    """Writes packets; times are seconds on the run's axis, and negative ones become 0."""

    def __init__(self, file: BinaryIO, title: str) -> None:
        self._file = file
        self._tracks = _PROCESS
        process = _number(1, 1) + _bytes(6, title.encode())
        descriptor = _number(1, _PROCESS) + _bytes(2, title.encode()) + _bytes(3, process)
        self._packet(_bytes(60, descriptor))

    def track(self, name: str, unit: str | None = None) -> int:
        """Adds a track below the run's, with a unit a counter track; returns its number."""
        self._tracks += 1
        descriptor = _number(1, self._tracks) + _number(5, _PROCESS) + _bytes(2, name.encode())
        if unit is not None:
            descriptor += _bytes(8, _bytes(6, unit.encode()))
        self._packet(_bytes(60, descriptor))
        return self._tracks

    def slices(self, name: str, stretches: Stretches) -> None:
        """Writes stretches to tracks of one name; overlapping stretches go to different tracks."""
        free: list[tuple[int, int]] = []
        """(end [ns], track) of each track; the one that ends first comes first."""
        for start_s, end_s, title in stretches:
            start_ns, end_ns = _ns(start_s), max(_ns(end_s), _ns(start_s))
            track = heapq.heappop(free)[1] if free and free[0][0] <= start_ns else self.track(name)
            heapq.heappush(free, (end_ns, track))
            self._event(start_ns, track, _BEGIN, _bytes(23, title.encode()))
            self._event(end_ns, track, _END)

    def instants(self, name: str, moments: Iterable[tuple[float, str]]) -> None:
        """Writes moments [s], each with a name."""
        track = self.track(name)
        for at_s, title in moments:
            self._event(_ns(at_s), track, _INSTANT, _bytes(23, title.encode()))

    def counter(self, name: str, unit: str, bounds_s: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> None:
        """Writes a value from each bound to the next, shapes (n + 1,) and (n,); unknown values are left out."""
        track = self.track(name, unit)
        known = np.isfinite(values)
        for at_s, value in zip(bounds_s[:-1][known].tolist(), values[known].tolist(), strict=True):
            self._event(_ns(at_s), track, _COUNTER, _varint(44 << 3 | 1) + struct.pack("<d", value))

    def _event(self, at_ns: int, track: int, kind: int, more: bytes = b"") -> None:
        event = _number(9, kind) + _number(11, track) + more
        self._packet(_number(8, at_ns) + _bytes(11, event) + _number(10, _SEQUENCE))

    def _packet(self, content: bytes) -> None:
        self._file.write(_bytes(1, content))


def _warnings(run: OpenedRun, writer: _Writer, most: int | None) -> None:
    if warnings := run.answer.warnings:
        writer.instants("warnings", ((0.0, str(warning)) for warning in warnings))


def _phases(run: OpenedRun, writer: _Writer, most: int | None) -> None:
    several = len({phase.repeat for phase in run.phases}) > 1
    for name, phases in (("phases", run.phases), ("marked phases", run.marked_phases)):
        stretches = [
            (phase.start_s, phase.end_s, f"{phase.name} {phase.repeat}" if several else phase.name) for phase in phases
        ]
        writer.slices(name, sorted(stretches))


def _power(run: OpenedRun, writer: _Writer, most: int | None) -> None:
    power = run.power
    period_s = float(np.median(np.diff(power["time_s"])))
    samples = SampleParts.of(power["time_s"], {"power_w": power["power_w"]})
    track = sampled_track(samples, period_s, most or len(power) * 2)
    mark = ", SIMULATED" if run.simulated else ""
    writer.counter(f"power{mark}", "W", track.bounds_s, track.mean["power_w"])
    for name, columns in (("least", track.lowest), ("greatest", track.highest)):
        if "power_w" in columns:
            title = f"power, {name} of {track.samples_per_cell} samples{mark}"
            writer.counter(title, "W", track.bounds_s, columns["power_w"])
    lost = ((gap.start_s, gap.end_s, f"{gap.lost_samples} samples lost") for gap in run.lost)
    writer.slices("lost samples", lost)


def _operations(run: OpenedRun, writer: _Writer, most: int | None) -> None:
    operations = run.operations
    every = 1 if most is None else max(1, -(-len(operations) // most))
    of = f", every {every}th" if every > 1 else ""
    start_s, thread = operations["time_s"][::every], operations["thread"][::every]
    end_s = run.time_s(operations["board_ns"] + operations["duration_ns"])[::every]
    kind, ok = operations["kind"][::every], operations["ok"][::every]
    for number in np.unique(thread).tolist():
        chosen = np.flatnonzero((thread == number) & np.isfinite(start_s))
        titles = np.where(ok[chosen], kind[chosen], kind[chosen] + ", failed")
        columns = (column.tolist() for column in (start_s[chosen], end_s[chosen], titles))
        writer.slices(f"operations, thread {number}{of}", zip(*columns, strict=True))


def _events(run: OpenedRun, writer: _Writer, most: int | None) -> None:
    events = run.events
    kinds, start_s = events["event"], events["time_s"]
    end_ns = events.arrow["end_board_ns"].fill_null(0).to_numpy()
    end_s = run.time_s(np.maximum(end_ns, events["board_ns"]))
    for name in dict.fromkeys(kinds.tolist()):
        chosen = np.flatnonzero((kinds == name) & np.isfinite(start_s))
        if name in ACTIVITIES:
            writer.slices(name, ((float(start_s[i]), float(end_s[i]), name) for i in chosen))
        else:
            writer.instants(name, ((float(start_s[i]), name) for i in chosen))


def _counters(run: OpenedRun, writer: _Writer, most: int | None) -> None:
    system = run.system
    if not np.isfinite(system["time_s"]).all():
        return
    track = system_track(system.arrow, lambda _: system["time_s"])
    if track is None:
        return
    for name, values in track.mean.items():
        writer.counter(*_COUNTERS[name], track.bounds_s, values)


def _ns(time_s: float) -> int:
    return max(0, round(time_s * 1e9))


def _varint(value: int) -> bytes:
    """Encodes a number with seven bits per byte, least significant first."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
