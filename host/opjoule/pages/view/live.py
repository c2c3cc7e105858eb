"""Replies for the live page, from the data that a measurement has written so far."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from opjoule.base.errors import BadInput, OpJouleError
from opjoule.base.scripts import program
from opjoule.base.units import missing, unstated
from opjoule.energy.trace.power_trace import Float64Array, Int64Array
from opjoule.pages.view.growing import GrowingNotes, GrowingPhases, GrowingPower
from opjoule.pages.view.replies import columns_of, power_values, report_of, rounded, stated_row, stretch_of
from opjoule.results.answer import open_answer
from opjoule.results.tracks import joined
from opjoule.runs.measuring.progress import PROGRESS, phase_title
from opjoule.runs.record.run_record import RunRecord, reading

BEING_MEASURED: Final = "being measured"
UNCORRECTED: Final = "as the meter sends it, before calibration; the interval follows after the run"


class LiveReplies:
    """Replies for the live page during and after a measurement. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._power, self._notes = GrowingPower(Path()), GrowingNotes(Path())
        self._phases = GrowingPhases(Path())
        self._title = ""
        self._has_ended = False
        self.known = {
            "runs": self._runs,
            "run": self._run,
            "power": self._read_power,
            "stretch": self._stretch,
            "running": self._running,
        }
        self.pages = {"report": self._report}

    def watch(self, directory: Path) -> None:
        """Makes all further replies describe this record, which need not exist yet."""
        with self._lock:
            self._directory = directory
            self._power = GrowingPower(directory / "raw" / "power.arrows")
            self._notes = GrowingNotes(directory / "raw" / PROGRESS)
            self._phases = GrowingPhases(directory)
            self._title = ""

    def end(self) -> None:
        """Records that the measuring program has ended, for whatever reason."""
        with self._lock:
            self._has_ended = True

    def _runs(self, query: Mapping[str, str]) -> Any:
        with self._lock:
            directory = self._directory
            ended = _ending(directory) if self._has_ended else None
        names = [directory.name] if directory else []
        folder = str(directory.parent) if directory else ""
        return {"folder": folder, "runs": names, "live": True, "ended": ended}

    def _run(self, query: Mapping[str, str]) -> Any:
        """Reads new data and returns what is known so far."""
        with self._lock:
            power, notes = self._power, self._notes
            power.catch_up()
            notes.catch_up()
            end_s = float(power.track.bounds_s[-1]) if power.track else 0.0
            rates = notes.rates()[1]
            is_timed = rates.size and notes.counts[-1][1]
            self._title = self._title or _title(self._directory)
            bands = self._bands(end_s)
            return {
                "title": self._title or (self._directory.name if self._directory else ""),
                "simulated": self._phases.simulated,
                "status": BEING_MEASURED,
                "notices": [],
                "duration_s": end_s,
                "samples": power.samples,
                "operations": int(notes.counts[-1][1]) if notes.counts else 0,
                "phases": bands,
                "now": {
                    "power_w": power.newest_w(),
                    "energy_j": power.energy_j(0.0, end_s)[0] if end_s else None,
                    "operations_per_s": float(rates[-1]) if is_timed else None,
                    "temperature_c": notes.temperature_c,
                    "phase": notes.phase and phase_title(notes.phase.name, notes.phase.repeat, notes.phase.repeats),
                    **self._times(),
                },
            }

    def _times(self) -> dict[str, Any]:
        """Elapsed and remaining time [s], brought forward from the time of their note to now."""
        noted = self._notes.time
        if noted is None:
            return {"elapsed_s": None, "remaining_s": None, "is_least": False}
        since_s = max((time.monotonic_ns() - noted.host_ns) * 1e-9, 0.0) if not self._has_ended else 0.0
        left_s = None if noted.remaining_s is None else max(noted.remaining_s - since_s, 0.0)
        return {"elapsed_s": noted.elapsed_s + since_s, "remaining_s": left_s, "is_least": noted.is_least}

    def _bands(self, end_s: float) -> list[dict[str, Any]]:
        """Phases whose place on the meter's clock is known, on the page's time axis."""
        placed = self._phases.known(self._notes)
        if not end_s:
            return []
        bands = []
        for phase in placed:
            start_s = float(self._seconds(np.array([phase.start_ns]))[0])
            stop_s = end_s if phase.end_ns is None else float(self._seconds(np.array([phase.end_ns]))[0])
            start_s, stop_s = max(start_s, 0.0), min(stop_s, end_s)
            if stop_s > start_s:
                named = {"name": phase.name, "repeat": phase.repeat, "kind": phase.kind}
                bands.append({**named, "start_s": start_s, "end_s": stop_s})
        return bands

    def _read_power(self, query: Mapping[str, str]) -> Any:
        start_s, end_s = stretch_of(query)
        columns = columns_of(query)
        with self._lock:
            track = self._power.track
            if track is None:
                raise BadInput("no sample has arrived yet")
            at_ns, per_s = self._notes.rates()
            at_ns = at_ns + self._phases.late_ns
            operations = None
            if per_s.any():
                operations = {"bounds_s": rounded(self._seconds(at_ns), 3), "per_s": rounded(per_s, 1)}
            values = power_values(joined(track.inside(start_s, end_s), columns))
            return {**values, "single": False, "lost_s": [], "operations": operations}

    def _stretch(self, query: Mapping[str, str]) -> Any:
        """Energy of a stretch, from blocks of the raw trace so far."""
        start_s, end_s = stretch_of(query)
        with self._lock:
            energy_j, known_s = self._power.energy_j(start_s, end_s)
        if not known_s:
            raise BadInput("there is no sample in this stretch")
        rows = [
            stated_row("energy_j", "energy", unstated(energy_j, "J", UNCORRECTED)),
            stated_row("power_w", "mean power", unstated(energy_j / known_s, "W", UNCORRECTED)),
            stated_row("marginal_energy_j", "energy above idle", missing("known after the run", "J")),
        ]
        return {"operations": None, "quantities": rows}

    def _running(self, query: Mapping[str, str]) -> Any:
        """Cumulative energy over a stretch; a part without samples adds nothing."""
        start_s, end_s = stretch_of(query)
        moments_s = np.linspace(start_s, end_s, columns_of(query))
        with self._lock:
            energies_j = [self._power.energy_j(start_s, moment_s)[0] for moment_s in moments_s.tolist()]
        time_s, energy_j = rounded(moments_s - start_s, 6), rounded(np.array(energies_j), 6)
        return {"time_s": time_s, "energy_j": energy_j, "marginal_energy_j": None}

    def _report(self, query: Mapping[str, str]) -> bytes:
        with self._lock:
            directory = self._directory
        if directory is None or directory.name != query.get("run"):
            raise BadInput(f"this page has no run '{query.get('run', '')[:80]}'")
        return report_of(directory)

    def _seconds(self, meter_ns: Int64Array) -> Float64Array:
        """Times on the axis that begins with the first block [s]."""
        return np.asarray((meter_ns - self._power.origin_ns) * 1e-9, np.float64)


def _ending(directory: Path | None) -> dict[str, Any]:
    """Message for the page about a measurement whose program has ended."""
    if directory is None or not (directory / "run.json").exists():
        return {"words": "The measurement ended before its record was begun. The terminal shows the reason."}
    head: dict[str, Any] = {"record": str(directory), "report": False}
    try:
        record = RunRecord.open(directory)
    except OpJouleError as fault:
        return {**head, "words": f"The measurement has ended. {fault}"}
    if not record.is_finished:
        analyse = f"'{program('report')} {directory}' analyses the recorded data."
        return {**head, "words": f"The measurement was killed before its end. {analyse}"}
    words, has_report = f"The measurement has ended: {record.status}.", (directory / "report.html").exists()
    return {**head, "words": words, "report": has_report}


def _title(directory: Path | None) -> str:
    """Title of the measurement, with SIMULATED if it is; empty before the record is begun."""
    if directory is None:
        return ""
    try:
        with reading(directory):
            return open_answer(directory).title
    except (OpJouleError, OSError):
        return ""
