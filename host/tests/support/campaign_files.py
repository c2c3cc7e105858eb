"""Campaign files for tests."""

from __future__ import annotations

from pathlib import Path

TWO = """
repeats = {repeats}
retries = {retries}
[constants]
device = "rpi4"
simulate = true
no_harness = true
records = 100
operations = 100
idle = 0
rate = "full"
settle_limit = 1
{constants}
[axes]
storage = ["sd", "ssd-usb3"]
{axes}
"""


def file_of(folder: Path, *, repeats=2, retries=0, constants='db = "leveldb"', axes="") -> Path:
    path = folder / "two.toml"
    path.write_text(TWO.format(repeats=repeats, retries=retries, constants=constants, axes=axes))
    return path
