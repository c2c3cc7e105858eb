"""Runs the simulated rig on a profile, records it with the host's own meter, and keeps both sides."""

import json
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.window import EnergyResult, Window, window_energy_j
from opjoule.meters.capture import Capture, CaptureSummary
from opjoule.meters.chips.chip import SensorSettings
from opjoule.meters.serial_meter import SerialMeter
from opjoule.trace.journal import TraceJournal, read_edges, read_trace
from opjoule.trace.power_trace import PowerTrace

ROOT = Path(__file__).resolve().parents[2]
RIG_SIM = ROOT / "build/rig-sim/rig-sim"
FIRMWARE = ROOT / ".pio/build/uno/firmware.elf"
ARDUINO_FIRMWARE = ROOT / ".pio/build/uno-arduino/firmware.elf"
NOMINAL_HZ = 16_000_000
LIMIT_S = 300
"""Of everything that is waited for: guards against waiting without end, and is far from what a busy computer needs."""

PERFECT_SENSOR = ErrorBounds(
    gain_errors_max={},
    current_offset_max_a=0.0,
    current_step_a=1e-4,
    voltage_step_v=4e-3,
    current_max_a=3.2,
    seen_fraction=0.5,
    clock_error_max=0.0,
)
"""No error but steps and sampling, so that a stated uncertainty has nothing to hide behind."""


@dataclass(frozen=True)
class Recording:
    """What the host recorded of one simulated profile, and the truth about it."""

    trace: PowerTrace
    cells: Cells
    edges_ns: np.ndarray
    summary: CaptureSummary
    truth: dict
    edges_s: np.ndarray
    """true times of the edges, in profile time [s]"""

    @property
    def total_error(self) -> float:
        """Relative error of the energy of the whole trace; outside of the profile no current flows."""
        total_j = float(self.cells.power.between(self.cells.start_ns, self.cells.end_ns))
        return total_j / self.truth["total_j"] - 1

    @property
    def edge_errors_s(self) -> np.ndarray:
        """Place of each edge on the meter clock against its true one, less the constant start-up time [s]."""
        rate = self.truth["mcu"]["clock_hz"] / NOMINAL_HZ
        offset_s = self.edges_ns * 1e-9 - self.edges_s * rate
        return offset_s - np.median(offset_s)

    def interval_energies(self, sensor: ErrorBounds = PERFECT_SENSOR) -> list[tuple[EnergyResult, float]]:
        """Energy between neighbouring edges as measured, with the true one [J]."""
        windows = zip(self.edges_ns[:-1].tolist(), self.edges_ns[1:].tolist(), strict=True)
        return [
            (window_energy_j(self.cells, Window(start, end, 500.0), sensor), interval["energy_j"])
            for (start, end), interval in zip(windows, self.truth["intervals"], strict=True)
        ]


def write_profile(
    path: Path, rows: list[tuple[float, float]], voltage_v: float, end_s: float, source_ohm: float = 0.0
) -> None:
    """A profile file of (time_s, current_a) rows behind a supply of this voltage and resistance."""
    lines = [
        f"{time_s:.9f},{current_a:.6f},{voltage_v - source_ohm * current_a:.6f}"
        for time_s, current_a in rows
        if time_s < end_s
    ]
    path.write_text("\n".join(["time_s,current_a,voltage_v", *lines, f"{end_s},0,{voltage_v}"]) + "\n")


def write_edges(path: Path, times_s: list[float]) -> None:
    """A file of edges that alternate, the first one rising."""
    lines = [f"{time_s:.9f},{1 - index % 2}" for index, time_s in enumerate(times_s)]
    path.write_text("\n".join(["time_s,level", *lines]) + "\n")


@contextmanager
def rig_sim(folder: Path, *options: str, firmware: Path = FIRMWARE):
    """A running rig-sim in `folder`, once its port `folder/meter` is there; gives the process."""
    link = folder / "meter"
    command = [RIG_SIM, "--elf", firmware, "--pty", link, "--truth", folder / "truth.json"]
    command += ["--patience-s", str(LIMIT_S), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            end_s = time.monotonic() + LIMIT_S
            while not link.is_symlink():
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < end_s, "rig-sim made no port"
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def capture(
    folder: Path,
    settings: SensorSettings | None = None,
    limit_s: float = LIMIT_S,
    running_for_1_s: threading.Event | None = None,
) -> CaptureSummary:
    """Records `folder/meter` into `folder` until its port closes; sets the event at 1 s on the meter's clock."""
    meter, journal = SerialMeter(str(folder / "meter"), settings=settings), TraceJournal(folder)
    try:
        meter.open()
        meter.configure()
        running = Capture(meter, journal)
        running.start()
        if running_for_1_s:
            while running.trace_s < 1 and not running.wait(0.02):
                pass
            running_for_1_s.set()
        assert running.wait(limit_s), "the simulator did not end"
        return running.stop()
    finally:
        journal.close()
        meter.close()


def record(
    folder: Path,
    rows: list[tuple[float, float]],
    edges_s: list[float],
    *options: str,
    voltage_v: float = 5.04,
    source_ohm: float = 0.0,
    end_s: float = 10.0,
    settings: SensorSettings | None = None,
    firmware: Path = FIRMWARE,
    limit_s: float = LIMIT_S,
) -> Recording:
    """Plays a profile of (time_s, current_a) rows unpaced and records it to its end."""
    write_profile(folder / "profile.csv", rows, voltage_v, end_s, source_ohm)
    write_edges(folder / "edges.csv", edges_s)
    inputs = ["--profile", str(folder / "profile.csv"), "--sync", str(folder / "edges.csv"), "--pace", "0"]
    with rig_sim(folder, *inputs, *options, firmware=firmware) as process:
        summary = capture(folder, settings, limit_s)
        assert process.wait(LIMIT_S) == 0, process.stderr.read()
    trace = read_trace(folder)
    truth = json.loads((folder / "truth.json").read_text())
    edges_ns = read_edges(folder).meter_ns
    return Recording(trace, Cells.of(trace), edges_ns, summary, truth, np.array(edges_s))
