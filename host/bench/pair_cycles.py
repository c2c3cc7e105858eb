"""Counts the CPU cycles that a pair of shunt and bus voltage costs beyond the time of the I2C bus. SIMULATED.

    .venv/bin/python host/bench/pair_cycles.py

Builds the firmware and firmware/bench/library_pair.cpp and runs both in the rig simulator. The cost of a pair is the
time from its first START to its end, less the time in which the bus itself was busy. Other interrupts, above all the
serial port's, fall into some pairs: `beyond` is the median of all pairs, `undisturbed` the tenth percentile. Exit code
1 if `undisturbed` of OpJoule's driver exceeds LIMIT_CYCLES.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from opjoule.meters.chips import SensorSettings
from opjoule.meters.messages import Mode
from rig_session import FIRMWARE, RunningRig, rig_sim, write_profile

ROOT = Path(__file__).resolve().parents[2]

LIMIT_CYCLES = 431
BENCH = ROOT / ".pio/build/bench-arduino/firmware.elf"
SHUNT, CLEAR, BUS = 1, 3, 2
SILENCE_CYCLES = 400_000
"""25 ms. library_pair.cpp pauses longer between two of its paths; its calls follow each other within 1 ms."""
BIT_CYCLES = 40
"""CPU cycles of one bit at 400 kHz and 16 MHz."""


@dataclass(frozen=True)
class Action:
    """One line of the bus log."""

    start: int
    end: int
    name: str
    byte: int


@dataclass(frozen=True)
class Cost:
    """Cycles of one pair, as medians. `undisturbed`: tenth percentile of the processor's cycles beyond the bus."""

    path: str
    whole: float
    bus: float
    pairs: int
    undisturbed: float

    @property
    def beyond(self) -> float:
        """Cycles that the processor adds to those of the bus."""
        return self.whole - self.bus


def tenth(beyond: list[float]) -> float:
    """The tenth percentile of the values."""
    return quantiles(beyond, n=10)[0]


def read_log(path: Path) -> list[Action]:
    """The bus log of rig-sim, without a last line that was cut off."""
    with path.open(newline="") as lines:
        rows = [row for row in csv.reader(lines) if len(row) == 4]
    return [Action(int(start), int(end), name, int(byte)) for start, end, name, byte in rows[1:]]


def transfers(log: list[Action]) -> Iterator[list[Action]]:
    """Parts of the log, each from a START to its STOP."""
    part: list[Action] = []
    for action in log:
        part.append(action)
        if action.name == "stop":
            yield part
            part = []


def registers(transfer: list[Action]) -> list[tuple[int, int, int]]:
    """(register, cycles from its START to the next one's, bus cycles of these) of each read that sets its pointer."""
    starts = [
        i
        for i, action in enumerate(transfer)
        if action.name == "start" and not transfer[i + 1].byte & 1  # addressed to write: a pointer follows
    ]
    reads = []
    for begin, end in zip(starts, [*starts[1:], len(transfer)][: len(starts)], strict=True):
        part = transfer[begin:end]
        until = transfer[end].start if end < len(transfer) else part[-1].end
        bus = sum(action.end - action.start for action in part)
        reads.append((part[2].byte, until - part[0].start, bus))
    return reads


def own_costs(log: list[Action]) -> list[Cost]:
    """Costs of the firmware: shunt and bus register, without and with a read in between that clears the flag."""
    rows = [row for row in map(registers, transfers(log)) if [r for r, _, _ in row] == [SHUNT, CLEAR, BUS]]
    both = [[part for part in row if part[0] != CLEAR] for row in rows]

    def cost(path: str, chosen: list[list[tuple[int, int, int]]]) -> Cost:
        whole = median(sum(cycles for _, cycles, _ in row) for row in chosen)
        bus = median(sum(bus for _, _, bus in row) for row in chosen)
        beyond = [float(sum(cycles - bus for _, cycles, bus in row)) for row in chosen]
        return Cost(path, whole, bus, len(chosen), tenth(beyond))

    return [
        cost("OpJoule: shunt and bus register", both),
        cost("OpJoule: the same and the ready flag cleared", rows),
    ]


def arduino_costs(lines: list[str], log: list[Action]) -> list[Cost]:
    """Costs of the paths of library_pair.cpp: its own count of cycles, and bus cycles from the log."""
    cuts = [i for i in range(1, len(log)) if log[i].start - log[i - 1].end > SILENCE_CYCLES]
    groups = [log[begin:end] for begin, end in zip(cuts, [*cuts[1:], len(log)], strict=True)]
    names = {
        "wire": "Arduino Wire: both registers",
        "library": "Arduino library: getShuntVoltage_mV, getBusVoltage_V",
        "library-current": "Arduino library: getCurrent_mA, getBusVoltage_V",
    }
    costs = []
    for line, group in zip(lines, groups, strict=True):
        name, *cycles = line.split()
        bus = sum(action.end - action.start for action in group) / len(cycles)
        beyond = tenth([int(whole) - bus for whole in cycles])
        costs.append(Cost(names[name], median(map(int, cycles)), bus, len(cycles), beyond))
    return costs


@contextmanager
def simulated(elf: Path, folder: Path, seconds: float, *options: str) -> Iterator[RunningRig]:
    """Runs rig-sim with a bus log, and waits for its end afterwards."""
    folder.mkdir()
    write_profile(folder / "profile.csv", [(0.0, 0.6)], 5.0, seconds)
    inputs = ["--profile", str(folder / "profile.csv"), "--bus-log", str(folder / "bus.csv")]
    with rig_sim(folder, *inputs, *options, firmware=elf, pace="0") as rig:
        yield rig
        rig.process.wait(60)


def run_own(folder: Path) -> list[Cost]:
    """Costs of the firmware in one second of 12-bit pairs."""
    with simulated(FIRMWARE, folder, 1.0) as rig:
        rig.capture(rig.meter(settings=SensorSettings(mode=Mode.PAIRS)))
    return own_costs(read_log(folder / "bus.csv"))


def run_arduino(folder: Path) -> list[Cost]:
    """Costs of the program library_pair.cpp, which runs from its start to its last line."""
    with simulated(BENCH, folder, 2.0, "--start", "boot") as rig:
        port = os.open(rig.port, os.O_RDWR | os.O_NOCTTY)
        os.write(port, b"\n")
        text = b""
        while not text.endswith(b"end\r\n"):
            text += os.read(port, 4096)
        os.close(port)
    return arduino_costs(text.decode().split("\r\n")[:-2], read_log(folder / "bus.csv"))


def main() -> int:
    """Prints the table. Returns: exit status, 0 if OpJoule's driver keeps to the limit."""
    build = [sys.executable, ROOT / "firmware/platformio/run.py", "run", "-e", "uno", "-e", "bench-arduino"]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as name:
        costs = run_own(Path(name) / "own") + run_arduino(Path(name) / "arduino")
    print(f"SIMULATED ATmega328P at 16 MHz, I2C at 400 kHz ({BIT_CYCLES} cycles a bit); cycles a pair, medians")
    print("| path | cycles | of the bus | beyond | undisturbed | pairs |\n|---|---|---|---|---|---|")
    for cost in costs:
        figures = f"{cost.whole:.0f} | {cost.bus:.0f} | {cost.beyond:.0f} | {cost.undisturbed:.0f}"
        print(f"| {cost.path} | {figures} | {cost.pairs} |")
    kept = max(cost.undisturbed for cost in costs if cost.path.startswith("OpJoule")) <= LIMIT_CYCLES
    print(f"limit for OpJoule: {LIMIT_CYCLES} cycles beyond the bus, undisturbed: {'kept' if kept else 'BROKEN'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
