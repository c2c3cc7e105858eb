"""Feeds hours of a meter's frames through the host's reader, as fast as the computer allows. SIMULATED.

    .venv/bin/python host/validation/soak.py --hours 24

A software meter makes frames with correct sums. Its tick counter, sums and counters are as wide as the firmware's, so
they wrap many times. Of ten thousand frames, one is lost and one gets a flipped bit. The host's own reader and
assembler process the frames, and the memory of the process is read once per simulated hour. Every conversion must be a
sample or counted as lost, and the samples must be in order. Exit code 1 if a conversion is not accounted for, a sample
is out of order, or the memory has grown by more than 8 MiB since the first hour.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

HOST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOST), str(HOST / "tests/support"), str(HOST / "tests/meters")]

import numpy as np  # noqa: E402  # path set above
from opjoule.meters.interface import GapEvent, Samples  # noqa: E402
from opjoule.meters.serial.assembler import parse  # noqa: E402
from opjoule.meters.serial.wire import FrameReader, encode_frame  # noqa: E402
from software_meter import PERIOD_TICKS, PairsSource  # noqa: E402
from test_meters_assembler import TICK_NS, assembler  # noqa: E402

PERIOD_S = PERIOD_TICKS * TICK_NS * 1e-9
WRAP_S = 2**32 * TICK_NS * 1e-9
LOST = 1e-4
GROWTH_KIB = 8 << 10
FRAMES_AT_ONCE = 32


def memory_kib() -> int:
    """Resident memory of this process [KiB]."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line)
    return int(line.split()[1])


class Tally:
    """Counts of the assembler's events, which are not kept."""

    def __init__(self) -> None:
        self.samples = self.lost = self.unordered = 0
        self.last_ns = -1

    def take(self, event: object) -> None:
        """Counts one event of the assembler."""
        if isinstance(event, GapEvent):
            self.lost += event.gap.lost_samples
        elif isinstance(event, Samples):
            at = event.meter_ns
            self.samples += at.size
            self.unordered += int(at[0] <= self.last_ns) + int((np.diff(at) <= 0).sum())
            self.last_ns = int(at[-1])


def soak(hours: float, seed: int) -> bool:
    """Prints a row for each hour; True if every conversion is accounted for and the memory stays flat."""
    chance, source, reader = random.Random(seed), PairsSource(count=24), FrameReader()
    meter, tally = assembler(anchor=source.ticks), Tally()
    first_kib, hour, begun_s, number = 0, 0, time.monotonic(), 0
    print("| simulated hours | conversions | samples | lost and counted | wraps of the ticks | memory, MiB | s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    while source.index * PERIOD_S < hours * 3600:
        data = bytearray()
        for _ in range(FRAMES_AT_ONCE):
            frame = bytearray(encode_frame(source.frame(), number))
            source.codes.clear()
            number += 1
            drawn = chance.random()
            if drawn < LOST and number > 10:
                continue
            if drawn < 2 * LOST and number > 10:
                frame[chance.randrange(1, len(frame) - 1)] ^= 1 << chance.randrange(8)
            data += frame
        for packet in reader.feed(bytes(data)):
            message = parse(packet)
            for event in meter.take(message, 0) if message is not None else ():
                tally.take(event)
        if source.index * PERIOD_S >= (hour + 1) * 3600:
            hour += 1
            first_kib = first_kib or memory_kib()
            wraps = int(source.index * PERIOD_S / WRAP_S)
            print(
                f"| {hour} | {source.index} | {tally.samples} | {tally.lost} | {wraps} | {memory_kib() / 1024:.1f} "
                f"| {time.monotonic() - begun_s:.0f} |",
                flush=True,
            )
    waiting = source.index - tally.samples - tally.lost
    end_ns = source.ticks * TICK_NS
    late_ns = end_ns - tally.last_ns
    print(f"conversions not accounted for: {waiting}; samples out of order: {tally.unordered}")
    print(f"last sample {late_ns / 1e6:.1f} ms before the end")
    grown = memory_kib() - first_kib if first_kib else 0
    print(f"memory growth since the first hour: {grown} KiB")
    return 0 <= waiting <= 3 * source.count and not tally.unordered and grown <= GROWTH_KIB and late_ns < 1e9


def main() -> int:
    """Runs the soak; exit status 1 if a check fails."""
    parser = argparse.ArgumentParser(description="Feeds hours of frames through the host's reader, SIMULATED.")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("SIMULATED")
    return 0 if soak(options.hours, options.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
