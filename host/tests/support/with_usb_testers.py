"""Runs OpJoule's commands with two USB testers in software plugged in: a POWER-Z and a FNIRSI FNB58. SIMULATED.

with_usb_testers.py LOAD COMMAND...: LOAD is a file with the amperes and volts that both testers see at every moment.
The FNB58's reading of the current is 0.6 % and 2 mA above the POWER-Z's.
"""

import sys
from pathlib import Path

import usb.backend.libusb1
from software_usb import SoftwareBus, SoftwareFnirsi, SoftwareKm003c

GAIN, OFFSET_A = 1.006, 0.002


class FileSupply:
    """Current and voltage in the file at the moment."""

    def __init__(self, path, gain=1.0, offset_a=0.0):
        self.path, self.gain, self.offset_a = Path(path), gain, offset_a

    def now(self):
        amperes, volts = map(float, self.path.read_text().split())
        return amperes * self.gain + self.offset_a, volts


def main():
    """Plugs the testers in and runs the command."""
    load, *arguments = sys.argv[1:]
    bus = SoftwareBus(
        SoftwareKm003c(FileSupply(load), serial="KM1"),
        SoftwareFnirsi(FileSupply(load, GAIN, OFFSET_A), serial="FN1"),
    )
    usb.backend.libusb1.get_backend = lambda find_library=None: bus
    from opjoule.cli.commands import main as run  # after the bus
    from opjoule.meters.km003c import Km003cSource

    Km003cSource.gap_s = 5.0  # other tests take the processor; the current is constant

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
