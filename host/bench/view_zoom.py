"""Measures how long the page of runs takes from a zoom step to its picture. SYNTHETIC trace of an hour at 5 kHz.

    .venv/bin/python host/bench/view_zoom.py [--samples N] [--keep DIR]

Drives Debian's chromium without a window. The run is opened twice, each time with a new server: the first one makes the
levels and stores them, the second one finds them. Prints for each:

- the time from opening the page's address to its picture, and the server's peak memory until then
- the slowest and the median step
- the time until the joules of half the hour arrive, their difference from the library's, and the peak memory in all

`--keep DIR` keeps the trace in DIR.
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
import urllib.request
from pathlib import Path

import numpy as np
import opjoule
from opjoule.energy.trace.journal import TraceJournal, to_parquet
from opjoule.pages.view.runs_folder import CACHE
from opjoule.runs.record.run_record import RunRecord
from report_browser import Browser

PERIOD_NS = 200_000
PART = 1_000_000
STEPS = 50
SERVER = """
import sys
from opjoule.cli.start import main
sys.exit(main(["view", sys.argv[1]]))
"""
DONE = "!!window.viewer && viewer.asking === 0 && viewer.runs.length > 0"


def make_trace(directory: Path, samples: int) -> None:
    """Makes a record of a trace alone: two levels of current, a ripple and noise."""
    settings = {"meter": "made up", "seconds": samples * PERIOD_NS * 1e-9}
    record = RunRecord.create(directory, settings, simulated=True)
    rng, journal = np.random.default_rng(1), TraceJournal(directory)
    for first in range(0, samples, PART):
        number = np.arange(first, min(first + PART, samples), dtype=np.int64)
        time_s = number * PERIOD_NS * 1e-9
        current_a = 0.6 + 0.3 * (time_s % 60 > 20) + 0.05 * np.sin(7 * time_s)
        noisy_a = np.round(current_a + rng.normal(0, 0.01, number.size), 5)
        journal.append_samples(number * PERIOD_NS, noisy_a, np.full(number.size, 5.1))
    journal.close()
    to_parquet(directory)
    record.finish("complete")


def peak_gb(number: int) -> float:
    """Peak resident memory of a process so far [GB]."""
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024e-9


def cpu_s(number: int) -> float:
    """Processor time of a process so far [s]."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def opened(folder: Path, samples: int) -> None:
    """Opens the run, zooms in to one sample and out again, requests joules, and prints the times."""
    begun_s = time.monotonic()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        address = server.stdout.readline().strip()
        served_s = time.monotonic() - begun_s
        with Browser(1280, 1200) as browser:
            begun_s, before_s = time.monotonic(), cpu_s(server.pid)
            browser.visit(address, DONE)
            took_s, of_cpu_s = time.monotonic() - begun_s, cpu_s(server.pid) - before_s
            print(
                f"opened {samples} samples in {took_s:.2f} s (wall clock), {of_cpu_s:.2f} s of the server's processor "
                f"time, {peak_gb(server.pid):.2f} GB (the server's start before it: {served_s:.2f} s)"
            )
            steps_ms = []
            for factor in [1 / 1.5] * STEPS + [1.5] * STEPS:
                browser.run(f"viewer.chart.zoom({factor}, viewer.chart.whole[1] / 3)")
                browser.wait_for(DONE)
                steps_ms.append(browser.run("viewer.stepMs"))
            print(f"{len(steps_ms)} steps: {max(steps_ms):.0f} ms at most, median {statistics.median(steps_ms):.0f} ms")
        half_s = samples * PERIOD_NS * 1e-9 / 2
        begun_s = time.monotonic()
        with urllib.request.urlopen(f"{address}stretch?run=hour&start=0.001&end={half_s}") as answer:
            energies = {entry["key"]: entry["value"] for entry in json.load(answer)["quantities"]}
        took_s = time.monotonic() - begun_s
        energy_j = opjoule.open_run(folder / "hour").energy(0.001, half_s).energy_j.value
        print(
            f"joules of half of it in {took_s:.2f} s, {energies['energy_j'] / energy_j - 1:.1e} from the library's; "
            f"{peak_gb(server.pid):.2f} GB in all"
        )
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """Makes the trace and opens it twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=18_000_000)
    parser.add_argument("--keep", type=Path, help="folder to make the trace in and to keep it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        if not (folder / "hour").exists():
            make_trace(folder / "hour", options.samples)
        (folder / "hour" / CACHE).unlink(missing_ok=True)
        for time_of in ("first", "second"):
            print(f"{time_of} time:")
            opened(folder, options.samples)


if __name__ == "__main__":
    main()
