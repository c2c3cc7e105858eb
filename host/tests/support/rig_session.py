"""Runs the simulated rig on a profile, records it with the host's own meter, and keeps record and true values."""

import json
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from granted_clock import GrantedClock, HostAway
from opjoule.clocks.exchanges import METER_EXCHANGES, ExchangeFile
from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.journal import TraceJournal, read_edges, read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import EnergyResult, Window, window_energy_j
from opjoule.meters.capture import Capture, CaptureSummary
from opjoule.meters.chips import SensorSettings
from opjoule.meters.interface import Meter, Wishes
from opjoule.meters.registry import open_meter

ROOT = Path(__file__).resolve().parents[3]
RIG_SIM = ROOT / "build/rig-sim/rig-sim"
FIRMWARE = ROOT / ".pio/build/uno/firmware.elf"
NANO_FIRMWARE = ROOT / ".pio/build/nano/firmware.elf"
ARDUINO_FIRMWARE = ROOT / ".pio/build/uno-arduino/firmware.elf"
NOMINAL_HZ = 16_000_000
LIMIT_S = 300
"""Limit of each wait: guards against waiting without end, and is far from what a busy computer needs."""

PERFECT_SENSOR = ErrorBounds(
    gain_errors_max={},
    current_offset_max_a=0.0,
    current_step_a=1e-4,
    voltage_step_v=4e-3,
    current_max_a=3.2,
    seen_fraction=0.5,
    clock_error_max=0.0,
)
"""A sensor whose only errors are steps and sampling, so that no larger uncertainty hides an error."""


@dataclass(frozen=True)
class Recording:
    """The host's recording of one simulated profile, and the true values."""

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
        """Measured less true time of each edge on the meter clock, without the constant start-up time [s]."""
        rate = self.truth["mcu"]["clock_hz"] / NOMINAL_HZ
        offset_s = self.edges_ns * 1e-9 - self.edges_s * rate
        return offset_s - np.median(offset_s)

    def interval_energies(self, sensor: ErrorBounds = PERFECT_SENSOR) -> list[tuple[EnergyResult, float]]:
        """(measured, true) energy between neighbouring edges [J]."""
        windows = zip(self.edges_ns[:-1].tolist(), self.edges_ns[1:].tolist(), strict=True)
        return [
            (window_energy_j(self.cells, Window(start, end, 500.0), sensor), interval["energy_j"])
            for (start, end), interval in zip(windows, self.truth["intervals"], strict=True)
        ]


def write_profile(
    path: Path, rows: list[tuple[float, float]], voltage_v: float, end_s: float, source_ohm: float = 0.0
) -> None:
    """Writes a profile of (time_s, current_a) rows behind a supply of this voltage and resistance."""
    lines = [
        f"{time_s:.9f},{current_a:.6f},{voltage_v - source_ohm * current_a:.6f}"
        for time_s, current_a in rows
        if time_s < end_s
    ]
    path.write_text("\n".join(["time_s,current_a,voltage_v", *lines, f"{end_s},0,{voltage_v}"]) + "\n")


def write_edges(path: Path, times_s: list[float]) -> None:
    """Writes a file of alternating edges; the first one is rising."""
    lines = [f"{time_s:.9f},{1 - index % 2}" for index, time_s in enumerate(times_s)]
    path.write_text("\n".join(["time_s,level", *lines]) + "\n")


class RunningRig:
    """A running rig-sim with the port `folder/meter`, and the clock for the meters on this port."""

    def __init__(self, folder: Path, process: subprocess.Popen, clock: HostClock) -> None:
        self.folder, self.process, self.clock = folder, process, clock
        self.port = folder / "meter"

    def meter(self, options: str = "", settings: SensorSettings | None = None) -> Meter:
        """The serial meter on its port, not yet open; `options`: text after the port in a meter's name."""
        return open_meter(f"serial:{self.port}{options}", Wishes(settings, clock=self.clock))

    def capture(
        self,
        meter: Meter | None = None,
        limit_s: float = LIMIT_S,
        running_for_1_s: threading.Event | None = None,
    ) -> CaptureSummary:
        """Records a meter, the plain one by default, into `folder` until its port closes.

        Sets the event at 1 s on the meter's clock.
        """
        meter, journal = meter or self.meter(), TraceJournal(self.folder)
        exchanges = ExchangeFile(self.folder / "raw" / METER_EXCHANGES)
        try:
            meter.open()
            meter.configure()
            running = Capture(meter, journal, exchanges, self.clock)
            running.start()
            if running_for_1_s:
                while running.trace_s < 1 and not running.wait(0.02):
                    pass
                running_for_1_s.set()
            assert running.wait(limit_s), "the simulator did not end"
            return running.stop()
        finally:
            journal.close()
            exchanges.close()
            meter.close()

    def truth(self) -> dict:
        """The true values that rig-sim wrote at its end."""
        return json.loads((self.folder / "truth.json").read_text())

    def played(self) -> dict:
        """The true values, after rig-sim has played its input to the end."""
        assert self.process.wait(LIMIT_S) == 0, self.process.stderr.read()
        return self.truth()

    def terminate(self) -> None:
        """Ends rig-sim before the end of its input."""
        self.process.terminate()
        self.process.wait(LIMIT_S)

    def cut_short(self) -> dict:
        """The true values up to now, at which rig-sim ends."""
        self.terminate()
        return self.truth()


@contextmanager
def rig_sim(folder: Path, *options: str, firmware: Path = FIRMWARE, pace: str = "host", away: HostAway | None = None):
    """Runs rig-sim in `folder`; yields a RunningRig.

    Args:
        away: with pace "host": when the host does not read.
        pace: "host": the rig's clock grants its time; "0": as fast as it can; "1": in this computer's time.
    """
    command = [RIG_SIM, "--elf", firmware, "--pty", folder / "meter", "--truth", folder / "truth.json"]
    command += ["--patience-s", str(LIMIT_S), "--pace", pace, *options]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if pace == "host":
            command += ["--grant", str(theirs.fileno())]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, pass_fds=[theirs.fileno()])
        theirs.close()
        clock = GrantedClock(ours, LIMIT_S, away) if pace == "host" else MONOTONIC
        with process:
            try:
                if "SIMULATED meter at" not in process.stdout.readline():
                    pytest.fail(f"rig-sim made no port: {process.stderr.read()}")
                yield RunningRig(folder, process, clock)
            finally:
                process.kill()


def record(
    folder: Path,
    rows: list[tuple[float, float]],
    edges_s: list[float],
    *options: str,
    voltage_v: float = 5.04,
    source_ohm: float = 0.0,
    end_s: float = 5.0,
    settings: SensorSettings | None = None,
    firmware: Path = FIRMWARE,
    limit_s: float = LIMIT_S,
    away: HostAway | None = None,
    end: Callable[[RunningRig], dict] = RunningRig.played,
) -> Recording:
    """Plays a profile of (time_s, current_a) rows and records it to its end.

    Args:
        away: when the host does not read.
        end: ends the rig and gives the true values.
    """
    write_profile(folder / "profile.csv", rows, voltage_v, end_s, source_ohm)
    write_edges(folder / "edges.csv", edges_s)
    inputs = ["--profile", str(folder / "profile.csv"), "--sync", str(folder / "edges.csv")]
    with rig_sim(folder, *inputs, *options, firmware=firmware, away=away) as rig:
        summary = rig.capture(rig.meter(settings=settings), limit_s)
        truth = end(rig)
    trace = read_trace(folder)
    edges_ns = read_edges(folder).meter_ns
    return Recording(trace, Cells.of(trace), edges_ns, summary, truth, np.array(edges_s))
