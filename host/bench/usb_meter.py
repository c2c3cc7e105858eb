#!/usr/bin/env python3
"""Measures the processor time of a POWER-Z reading, and how many of 1,000 readings a second arrive. SIMULATED.

.venv/bin/python host/bench/usb_meter.py [READINGS]

A stand-in below pyusb answers. Its own processor time is measured separately and subtracted. The parts of a USB
controller and of the kernel are not included. Then 10 s are recorded as by `record`, while the stand-in answers 0.6 ms
late and leaves one question of 1,000 without an answer. The result is the number of missing readings, by reason.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import usb.backend.libusb1
from opjoule.energy.trace.journal import TraceJournal, read_trace
from opjoule.meters.capture import Capture
from opjoule.meters.km003c import RATE_HZ, Km003cSource
from opjoule.meters.polling import PolledMeter
from software_usb import SoftwareBus, SoftwareKm003c

QUESTION = b"\x0c\x07\x02\x00"


def cost_us(work: Callable[[], object], count: int) -> float:
    """Processor time of one call [us]."""
    before_ns = time.thread_time_ns()
    for _ in range(count):
        work()
    return (time.thread_time_ns() - before_ns) / count / 1e3


RECORDED_S = 10.0
ANSWER_S = 0.6e-3
UNANSWERED = range(1_000, 100_000, 1_000)


class SlowKm003c(SoftwareKm003c):
    """A POWER-Z that answers late, and some questions not at all."""

    def give(self, timeout_s: float) -> bytes:
        """The answer after 0.6 ms, or nothing after the timeout."""
        time.sleep(ANSWER_S)
        answer: bytes = super().give(timeout_s)
        if not answer:
            time.sleep(timeout_s - ANSWER_S)
        return answer


def recorded() -> str:
    """Records 10 s of 1,000 readings a second. Returns: a sentence about the readings, arrived and missing."""
    usb.backend.libusb1.get_backend = lambda find_library=None: SoftwareBus(SlowKm003c(lose=UNANSWERED))
    meter = PolledMeter(Km003cSource())
    meter.open()
    meter.configure()
    with tempfile.TemporaryDirectory() as folder:
        journal = TraceJournal(Path(folder))
        capture = Capture(meter, journal)
        capture.start()
        while capture.trace_s < RECORDED_S:
            capture.wait(0.1)
        summary = capture.stop()
        journal.close()
        trace = read_trace(Path(folder))
    meter.close()
    length_s = (trace.meter_ns[-1] - trace.meter_ns[0]) * 1e-9
    expected, link = round(length_s * RATE_HZ) + 1, summary.losses.link
    return (
        f"{trace.good.sum()} of {expected} readings in {length_s:.1f} s; {summary.losses.lost_samples} lost in gaps, "
        f"{link['unanswered']} without an answer, {link['skipped_polls']} skipped by {link['late_polls']} late ones; "
        "SIMULATED"
    )


def main() -> None:
    """Prints the processor time of a reading and the result of a recording."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    device = SoftwareKm003c()
    usb.backend.libusb1.get_backend = lambda find_library=None: SoftwareBus(device)
    meter = PolledMeter(Km003cSource())
    meter.open()

    def answer() -> None:
        device.take(QUESTION)
        device.give(0.0)

    whole_us, own_us = cost_us(meter.poll, count), cost_us(answer, count)
    print(f"{whole_us - own_us:.0f} us a reading ({whole_us:.0f} less the stand-in's {own_us:.0f}); SIMULATED")
    print(recorded())


if __name__ == "__main__":
    main()
