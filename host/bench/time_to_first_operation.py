"""Measures the time from the start of `measure.py` to the first workload operation on a prepared board.

    .venv/bin/python host/bench/time_to_first_operation.py [--latency-ms 20] [--runs 5]

The board is this computer behind a real sshd on loopback, over a link with the given round-trip latency; the meter is
simulated. The time runs from the start of the process to the loader's load-start, both on CLOCK_MONOTONIC.
docs/benchmarks-boards.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from loopback_sshd import Link, Sshd

ROOT = Path(__file__).resolve().parents[2]

KEEP = ("page_cache", "governor", "wifi", "bluetooth", "hdmi", "leds", "swap", "services")


def rig_toml(sshd: Sshd, port: int, meter: Path, storage: Path) -> str:
    """rig.toml with one board behind the slow link, which leaves this computer's settings unchanged."""
    lines = [
        f'[meter]\nport = "serial:{meter}"',
        f'[device.rpi4]\nconnection = "ssh:{sshd.target}"\nsync = "none"',
        f"ssh_options = {json.dumps(sshd.options(port))}",
        f'[device.rpi4.storage]\nsd = "{storage}"',
        "[device.rpi4.state]",
        *(f'{key} = "keep"' for key in KEEP),
    ]
    return "\n".join(lines) + "\n"


def measure_once(folder: Path, sshd: Sshd, link: Link) -> float:
    """Seconds from process start to the first load operation."""
    (folder / "profile.csv").write_text("time_s,current_a,voltage_v\n0,0.6,5.0\n3600,0.6,5.0\n")
    meter = folder / "meter"
    simulator = subprocess.Popen(
        [
            *(ROOT / "build/rig-sim/rig-sim", "--elf", ROOT / ".pio/build/uno/firmware.elf", "--pty", meter),
            *("--profile", folder / "profile.csv", "--pace", "1", "--truth", folder / "truth.json"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not meter.exists():
            time.sleep(0.01)
        (folder / "rig.toml").write_text(rig_toml(sshd, link.port, meter, folder / "storage"))
        command = [sys.executable, "-m", "opjoule.cli.start", "--db", "leveldb", "--device", "rpi4"]
        command += ["--rig", str(folder / "rig.toml"), "--out", str(folder / "out"), "--records", "1000"]
        command += [
            "--operations",
            "1000",
            "--idle",
            "0",
            "--settle-limit",
            "0",
            "--no-harness",
            "--rate",
            "full",
            "--reset",
            "load",
            "--no-signature",
            "--json",
        ]
        started_ns = time.monotonic_ns()
        subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": str(ROOT / "host")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        phases = json.loads((folder / "out/run.json").read_text())["phases"]
        return (phases[0]["start_board_ns"] - started_ns) * 1e-9
    finally:
        simulator.terminate()
        simulator.wait()


def main() -> None:
    """Prints the time of each run and the median."""
    parser = argparse.ArgumentParser(description="Time from command to first workload operation, over loopback ssh.")
    parser.add_argument("--latency-ms", type=float, default=20.0, help="round trip of the link (default: 20)")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    seconds = []
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "sshd").mkdir()
        sshd = Sshd(Path(place) / "sshd")
        link = Link(sshd.port, options.latency_ms / 2000)
        try:
            for number in range(options.runs):
                folder = Path(place) / str(number)
                folder.mkdir()
                seconds.append(measure_once(folder, sshd, link))
                print(f"run {number + 1}: {seconds[-1]:.2f} s", flush=True)
        finally:
            link.close()
            sshd.close()
    print(f"median of {options.runs}: {statistics.median(seconds):.2f} s, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
