"""Measures the processor time of a recording at 5 kHz and of its live page, and counts lost samples.

    .venv/bin/python host/bench/live_view.py [SECONDS]

The meter is the tests' software Monsoon in place of the library's protocol: real packets in real time, in the reader's
own process. Meanwhile Debian's chromium shows the page and draws it on the processor. The browser's time is reported
separately; the sum includes the time of the page's server.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from opjoule.cli import record
from opjoule.cli.commands import parse
from opjoule.meters.monsoon.meter import MonsoonMeter, MonsoonSettings
from opjoule.runs.record.run_record import RunRecord
from report_browser import Browser
from software_monsoon import SoftwareMonsoon

HOST = Path(__file__).resolve().parents[1]

SETTLED_S = 5.0
"""Time in which all programs load. Processor time is counted after it, until shortly before the end."""


def record_here(place: Path, seconds: float) -> int:
    """Runs `measure.py record --live` with the software Monsoon as its meter. Returns: its exit status."""
    device = partial(SoftwareMonsoon, seconds=seconds + 5.0, paced=True)
    record.open_meters = lambda name, storage: MonsoonMeter(MonsoonSettings(), device)  # type: ignore[assignment]
    argv = ["record", "--meter", "monsoon", "--out", str(place), "--seconds", str(seconds), "--live"]
    return record.run_record(parse(argv).options)


def cpu_s(number: int) -> float:
    """Processor time of a process so far [s]."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processes(recorder: int) -> dict[str, int]:
    """Process numbers of the recorder and of its child processes, by their task."""
    numbers = {"recording": recorder}
    for task in Path(f"/proc/{recorder}/task").iterdir():
        for number in (task / "children").read_text().split():
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            if b"opjoule.cli.view" in command:
                numbers["page's server"] = int(number)
            elif b"spawn_main" in command:
                numbers["reader of the meter"] = int(number)
    return numbers


def descendants(number: int) -> list[int]:
    """Numbers of a process and all its descendants."""
    numbers = [number]
    for process in numbers:
        with suppress(OSError):  # it has just ended
            for task in Path(f"/proc/{process}/task").iterdir():
                numbers += [int(child) for child in (task / "children").read_text().split()]
    return numbers


def of_browser_s(number: int) -> float:
    """Processor time so far of the browser's running processes [s]."""
    total_s = 0.0
    for process in descendants(number):
        with suppress(OSError):
            total_s += cpu_s(process)
    return total_s


def watched(recorder: subprocess.Popen[str], seconds: float) -> None:
    """Shows the page while the recorder runs, and prints the processor time of each process."""
    assert recorder.stderr
    lines = iter(recorder.stderr)
    address = next(line.split()[-1] for line in lines if line.startswith("live view:"))
    threading.Thread(target=lambda: [*lines], daemon=True).start()  # a full pipe would stop the recorder
    until_s = time.monotonic() + seconds - 2 * SETTLED_S
    with Browser(1280, 1100) as browser:
        browser.visit(address, "!!window.viewer")
        time.sleep(SETTLED_S)
        parts = processes(recorder.pid)
        begun_s, before_s = time.monotonic(), {name: cpu_s(number) for name, number in parts.items()}
        browser_s = of_browser_s(browser.process_id)
        shown_s, used_s, length_s = 0.0, dict.fromkeys(parts, 0.0), 0.0
        while time.monotonic() < until_s:
            time.sleep(SETTLED_S)
            try:
                used_s = {name: cpu_s(number) - before_s[name] for name, number in parts.items()}
            except OSError:
                print("one of the processes ended early")
                break
            length_s = time.monotonic() - begun_s
            shown_s = of_browser_s(browser.process_id) - browser_s
        print(f"the page shows {browser.run('viewer.runs[0].samples')} samples, complaints: {browser.complaints}")
    for name, of_it_s in [*used_s.items(), ("all", sum(used_s.values())), ("browser", shown_s)]:
        print(f"{name:<20} {of_it_s:6.2f} s in {length_s:.1f} s: {of_it_s / length_s:.1%} of one core")


def main(seconds: float) -> None:
    """Records in a separate process for the given time, and prints how many samples it recorded and lost."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "record"
        command = [sys.executable, __file__, str(seconds), str(place)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as recorder:
            watched(recorder, seconds)
            recorder.wait()
        opened = RunRecord.open(place)
        captured = opened.document["capture"]
        print(f"record {opened.status}: {captured['samples']} samples, {captured['gaps']} gaps, {captured['losses']}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(record_here(Path(sys.argv[2]), float(sys.argv[1])))
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 90.0)
