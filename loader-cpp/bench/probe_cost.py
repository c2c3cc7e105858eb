#!/usr/bin/env python3
"""Measures the cost of the probe to the board: processor time and wake-ups of `probe serve`, on this computer.

    loader-cpp/bench/probe_cost.py [--seconds 60] [--probe build/loader/probe]

Three cases are measured, each for that time. The probe watches nothing, a process with 4 threads and 2 children that
all sleep, or a process that starts a program about 50 times a second. In every case a sync line runs, and the clock is
requested once a second, as by a host.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET_PERCENT = 0.3
WATCHED = {
    "nothing": "",
    "asleep": "import threading, time, subprocess\n"
    "for _ in range(3): threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    "children = [subprocess.Popen(['sleep', '3600']) for _ in range(2)]\n"
    "print(flush=True)\ntime.sleep(3600)",
    "forking": "import subprocess, time\nprint(flush=True)\n"
    "while True:\n    subprocess.run(['true'])\n    time.sleep(0.02)",
}


def switches(pid: int) -> int:
    """Number of times that a process's threads slept and were woken: their voluntary context switches."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        total += int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return total


def processor_ns(pid: int) -> int:
    """Processor time of a process so far [ns]."""
    return time.clock_gettime_ns(~pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK with CPUCLOCK_SCHED


def ask(probe: subprocess.Popen[str], request: str) -> dict[str, object]:
    """Sends a request to the probe. Returns: its answer."""
    assert probe.stdin and probe.stdout
    probe.stdin.write(request + "\n")
    probe.stdin.flush()
    while True:
        line = json.loads(probe.stdout.readline())
        if "answer" in line:
            return dict(line)


def measure(program: Path, script: str, seconds: float) -> tuple[float, float, int]:
    """(processor time in percent of one core, wake-ups a second, sample rows) of one case."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "serve", "--dir", folder, "--path", folder, "--sync", f"virtual:{folder}/line"]
        probe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert probe.stdout
        marks = json.loads(probe.stdout.readline())["marks"]
        watched = None
        if script:
            watched = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
            assert watched.stdout
            watched.stdout.readline()
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(marks)
                line.sendall(f"watch {watched.pid}\nsync\n".encode())
                line.recv(100)
        ask(probe, "files a")
        start_s, start_ns, start_switches = time.monotonic(), processor_ns(probe.pid), switches(probe.pid)
        while time.monotonic() < start_s + seconds:
            time.sleep(1)
            ask(probe, "clock")
        passed_s = time.monotonic() - start_s
        cpu_percent = 1e-7 * (processor_ns(probe.pid) - start_ns) / passed_s
        wakes_per_s = (switches(probe.pid) - start_switches) / passed_s
        if watched:
            subprocess.run(["pkill", "-P", str(watched.pid)], check=False)
            watched.kill()
            watched.wait()
        probe.communicate()
        rows = len(Path(folder, "a.system.csv").read_text().splitlines()) - 1
    return cpu_percent, wakes_per_s, rows


def main() -> int:
    """Prints a row for each case. Returns: exit status, 1 if a case is above the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--probe", type=Path, default=ROOT / "build/loader/probe")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} processors, Linux {os.uname().release}, load average {os.getloadavg()[0]:.1f}")
    print("| watched | processor time [% of a core] | wake-ups [1/s] | rows |\n|---|---|---|---|")
    worst = 0.0
    for name, script in WATCHED.items():
        percent, wakes_per_s, rows = measure(asked.probe.resolve(), script, asked.seconds)
        worst = max(worst, percent)
        print(f"| {name} | {percent:.3f} | {wakes_per_s:.1f} | {rows} |", flush=True)
    print(f"target: at most {TARGET_PERCENT} %: {'met' if worst <= TARGET_PERCENT else 'missed'}")
    return int(worst > TARGET_PERCENT)


if __name__ == "__main__":
    sys.exit(main())
