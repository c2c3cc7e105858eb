"""Compares the cost of decoding a Monsoon's packets with that of the library's own code on the same packets.

    .venv/bin/python host/bench/monsoon_decode.py --library FOLDER

FOLDER contains PyPI's Monsoon (for example: pip install --target FOLDER -r host/requirements/monsoon.in). Without
--library, only this project's decoder is timed. The tests' software Monsoon makes the packets.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "host"), str(ROOT / "host/tests/support")]

import numpy as np  # noqa: E402
from opjoule.meters.monsoon.assembler import Calibration, MonsoonAssembler, decode  # noqa: E402
from opjoule.meters.monsoon.models import HVPM  # noqa: E402
from software_monsoon import HVPM as UNIT  # noqa: E402
from software_monsoon import Supply, stream  # noqa: E402

BATCH = 167
"""Packets in 0.1 s: the reader's batch."""
SAMPLES_PER_S = 5000


def best_us_a_sample(run: Callable[[], None], samples: int, rounds: int) -> float:
    """CPU time of the fastest of several rounds [us a sample]."""
    best = float("inf")
    for _ in range(rounds):
        began_ns = time.process_time_ns()
        run()
        best = min(best, time.process_time_ns() - began_ns)
    return best * 1e-3 / samples


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", metavar="FOLDER", help="where PyPI's Monsoon is installed")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of the stream (default: 10)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; the fastest counts (default: 5)")
    options = parser.parse_args()
    made = stream(Supply(), options.seconds, drop_rate=0.001)
    samples = 3 * len(made.packets)
    batches = [
        (made.packets[at : at + BATCH].tobytes(), made.due_ns[at : at + BATCH])
        for at in range(0, len(made.packets), BATCH)
    ]
    memory = UNIT.memory()

    def decoded() -> None:
        for data, _ in batches:
            decode(data)

    def at_once() -> None:
        decode(made.packets.tobytes())

    def assembled() -> None:
        scale = HVPM.channel_scale("main", lambda opcode, length, signed: memory[opcode])
        taker = MonsoonAssembler(Calibration(HVPM, "main", scale))
        for data, arrival_ns in batches:
            taker.take(data, arrival_ns)

    rows = [
        (
            f"OpJoule, decode in batches of {BATCH} packets (0.1 s)",
            best_us_a_sample(decoded, samples, options.rounds),
        ),
        ("OpJoule, decode of the whole stream at once", best_us_a_sample(at_once, samples, options.rounds)),
        (
            "OpJoule, packets to events (decode, time, scale, gaps)",
            best_us_a_sample(assembled, samples, options.rounds),
        ),
    ]
    if options.library:
        rows += library_rows(options.library, made.packets, samples, options.rounds)
    print(f"{samples} samples, numpy {np.__version__}, CPU time")
    for name, cost_us in rows:
        share = cost_us * SAMPLES_PER_S * 1e-6
        print(f"  {name:<58} {cost_us:9.4f} us a sample  {share:8.3%} of one core at 5 kHz")
    if options.library:
        print(f"  the library's swizzlePacket costs {rows[3][1] / rows[0][1]:.0f} times OpJoule's decode")
    return 0


def library_rows(
    folder: str, packets: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]", samples: int, rounds: int
) -> list[tuple[str, float]]:
    """Rows of the table for the library's own decoder on the same packets."""
    sys.path.append(folder)
    from Monsoon import HVPM as library  # noqa: PLC0415
    from Monsoon import sampleEngine  # noqa: PLC0415

    monitor = library.Monsoon()
    rows = [bytes(packet) for packet in packets]
    lists = [list(packet) for packet in rows]
    engine = sampleEngine.SampleEngine(monitor)
    monitor.statusPacket.mainCoarseScale = 6400.0

    def swizzled() -> None:
        for packet in lists:
            monitor.swizzlePacket(packet)

    def processed() -> None:
        engine._SampleEngine__processPacket([monitor.swizzlePacket(packet) for packet in lists])

    return [
        ("PyPI Monsoon, swizzlePacket", best_us_a_sample(swizzled, samples, rounds)),
        ("PyPI Monsoon, swizzlePacket and sorting by kind", best_us_a_sample(processed, samples, rounds)),
    ]


if __name__ == "__main__":
    sys.exit(main())
