#!/usr/bin/env python3
"""Prints the flash and RAM that the firmware of each board uses, a line for each environment.

Builds nothing: run `run.py run -e uno -e uno-arduino` before (`./test` does it).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / ".pio" / "build"
ENVIRONMENTS = ("uno", "nano", "uno-arduino")
FLASH = {".text", ".data"}
RAM = {".data", ".bss", ".noinit"}


def sections(elf: Path) -> dict[str, int]:
    """Section -> size [bytes] in an ELF file, from avr-size."""
    listing = subprocess.run(["avr-size", "-A", elf], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines() if line.startswith(".")]
    return {row[0]: int(row[1]) for row in rows}


def main() -> int:
    """Prints the sizes. Returns: exit status, 1 if a firmware was not built."""
    limits = json.loads((HERE / "platforms/atmelavr/boards/uno.json").read_text())["upload"]
    for environment in ENVIRONMENTS:
        elf = BUILD / environment / "firmware.elf"
        if not elf.exists():
            print(
                f"size {environment}: {elf} is missing: run firmware/platformio/run.py run -e {environment}",
                file=sys.stderr,
            )
            return 1
        found = sections(elf)
        flash = sum(found.get(name, 0) for name in FLASH)
        ram = sum(found.get(name, 0) for name in RAM)
        flash_most, ram_most = limits["maximum_size"], limits["maximum_ram_size"]
        print(f"size {environment}: flash {flash} of {flash_most} bytes, static RAM {ram} of {ram_most} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
