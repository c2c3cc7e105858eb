"""A Monsoon that resets when it is closed is waited for: the real PyPI library and pyusb, a device in software.

    .venv/bin/pip install -r host/requirements/monsoon.in
    .venv/bin/python host/validation/monsoon_reset.py

SIMULATED: the stand-in is a backend of pyusb in place of libusb (monsoon_backend.py). It answers the library's control
transfers, is off the bus for so many seconds after a reset (the library's closeDevice makes one), and is there again as
a new device.
Three cases: it is back after 5 s, it never comes back, and there is none from the start. Takes about 30 s.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from opjoule.errors import MeterFault  # noqa: E402
from opjoule.meters.monsoon import MonsoonMeter, MonsoonSettings  # noqa: E402
from opjoule.meters.monsoon.meter import RESET_LIMIT_S, Patience  # noqa: E402
from opjoule.meters.monsoon.reader import MonsoonProtocol, ProtocolSource  # noqa: E402

RESET_S = 5.0


def protocol(bus: str, reset_s: float) -> MonsoonProtocol:
    """The library's own connection, its pyusb on the stand-in; `bus` is a file that says when the device is back."""
    import usb.backend.libusb1  # noqa: PLC0415
    from monsoon_backend import Backend  # noqa: PLC0415
    from opjoule.meters.monsoon.reader import usb_protocol  # noqa: PLC0415

    made = Backend(Path(bus), reset_s)
    usb.backend.libusb1.get_backend = lambda *_, **__: made
    return usb_protocol()


def opened(bus: Path, reset_s: float) -> tuple[float, list[str], str]:
    """(seconds, what was said, serial number or fault) of one opening."""
    said: list[str] = []
    source = ProtocolSource("monsoon_reset", "protocol", {"bus": str(bus), "reset_s": reset_s})
    meter, began_s = MonsoonMeter(MonsoonSettings(), source, Patience(say=said.append)), time.monotonic()
    try:
        outcome = f"serial number {meter.open().serial_number}"
    except MeterFault as fault:
        outcome = str(fault)
    took_s = time.monotonic() - began_s
    meter.close()
    return took_s, said, outcome


def main() -> int:
    """0 if the device is waited for, and only so long."""
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
            print(f"{name:20} {took_s:5.1f} s  {outcome}  (said: {'; '.join(said)})")
    print("SIMULATED: as it should be" if well else "SIMULATED: NOT as it should be")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
