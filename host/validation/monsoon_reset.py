"""Checks that the host waits for a Monsoon that resets when it is closed, with the real PyPI library and pyusb.

    .venv/bin/pip install -r host/requirements/monsoon.in
    .venv/bin/python host/validation/monsoon_reset.py

SIMULATED: the device is software, a pyusb backend that replaces libusb (monsoon_backend.py). It answers the library's
control transfers. After a reset (the library's closeDevice makes one) it is off the bus for some seconds, and then
comes back as a new device. There are three cases: the device is back after 5 s, it never comes back, or there is none
from the start. Takes about 30 s.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from opjoule.base.errors import MeterFault
from opjoule.meters.monsoon import MonsoonMeter, MonsoonSettings
from opjoule.meters.monsoon.meter import RESET_LIMIT_S
from opjoule.meters.monsoon.reader import MonsoonProtocol

RESET_S = 5.0


def protocol(bus: str, reset_s: float) -> MonsoonProtocol:
    """The library's own connection through the simulated backend; `bus` is a file with the time of the return."""
    import usb.backend.libusb1  # noqa: PLC0415
    from monsoon_backend import Backend  # noqa: PLC0415
    from opjoule.meters.monsoon.reader import usb_protocol  # noqa: PLC0415

    made = Backend(Path(bus), reset_s)
    usb.backend.libusb1.get_backend = lambda *_, **__: made
    return usb_protocol()


def opened(bus: Path, reset_s: float) -> tuple[float, list[str], str]:
    """Opens the meter once; returns (seconds, messages, serial number or fault)."""
    said = io.StringIO()
    made = partial(protocol, bus=str(bus), reset_s=reset_s)
    meter, began_s = MonsoonMeter(MonsoonSettings(), made), time.monotonic()
    try:
        with contextlib.redirect_stderr(said):
            outcome = f"serial number {meter.open().serial_number}"
    except MeterFault as fault:
        outcome = str(fault)
    took_s = time.monotonic() - began_s
    meter.close()
    return took_s, said.getvalue().splitlines(), outcome


def main() -> int:
    """Runs the three cases; exit status 1 if the host waits too short a time or reports the wrong outcome."""
    well = True
    with tempfile.TemporaryDirectory(prefix=f"opjoule-monsoon-{os.getpid()}-") as folder:
        for name, reset_s, there_before in (
            (f"back after {RESET_S:g} s", RESET_S, True),
            ("never back", 1e9, True),
            ("none from the start", 1e9, False),
        ):
            bus = Path(folder) / "bus"
            bus.write_text("0" if there_before else "1e18")
            if there_before:
                first = opened(bus, reset_s)  # its close() resets the device
                well &= first[2] == "serial number 23171" and not first[1]
            took_s, said, outcome = opened(bus, reset_s)
            back = reset_s == RESET_S
            well &= len(said) == 1 and (outcome == "serial number 23171" if back else "plugged in" in outcome)
            well &= took_s >= (1.0 if back else RESET_LIMIT_S)
            print(f"{name:20} {took_s:5.1f} s  {outcome}  (messages: {'; '.join(said)})")
    print("SIMULATED: passed" if well else "SIMULATED: FAILED")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
