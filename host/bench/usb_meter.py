#!/usr/bin/env python3
"""Processor time of a reading of a POWER-Z, as this computer spends it; a stand-in below pyusb answers. SIMULATED.

.venv/bin/python host/bench/usb_meter.py [READINGS]

The stand-in's own part is measured beside it and taken off. A USB controller and the kernel's part are not in it.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

HOST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOST), str(HOST / "tests" / "support")]

import usb.backend.libusb1  # noqa: E402  # path set above
from opjoule.meters.km003c import Km003cSource  # noqa: E402
from opjoule.meters.polled.polling import PolledMeter  # noqa: E402
from software_usb import SoftwareBus, SoftwareKm003c  # noqa: E402

QUESTION = b"\x0c\x07\x02\x00"


def cost_us(work: Callable[[], object], count: int) -> float:
    """Processor time of one call [us]."""
    before_ns = time.thread_time_ns()
    for _ in range(count):
        work()
    return (time.thread_time_ns() - before_ns) / count / 1e3


def main() -> None:
    """Prints both costs."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    device = SoftwareKm003c()
    usb.backend.libusb1.get_backend = lambda find_library=None: SoftwareBus(device)
    meter = PolledMeter(Km003cSource())
    meter.open()

    def answer() -> None:
        device.take(QUESTION)
        device.give(0.0)

    whole_us, own_us = cost_us(meter.poll, count), cost_us(answer, count)
    print(
        f"{whole_us - own_us:.0f} us a reading ({whole_us:.0f} less the stand-in's {own_us:.0f}); SIMULATED"
    )


if __name__ == "__main__":
    main()
