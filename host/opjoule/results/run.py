"""A record opened for the user's own programs: `opjoule.open_run("runs/example")`.

All data have one time axis, `time_s`: seconds on the meter's clock since the trace began, as in report.html. The
energy of a stretch is computed like the energies in result.json, with the record's clock maps.
How to use it: docs/how-to/analyse-in-python.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opjoule.base.errors import BadInput, RecordFault, suggestion
from opjoule.base.notices import Notice
from opjoule.base.units import Cause, Quantity, missing
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import IdlePower, idle_power, marginal_energy
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.tables import read_parquet
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.results.answer import Answer, open_answer
from opjoule.results.recorded import TimeAxis, board_to_meter, corrected_trace
from opjoule.results.tracks import LostStretch
from opjoule.runs.evaluation.trace_result import meter_to_host, no_uncertainty, unknown_sensor
from opjoule.runs.record.phases import Cycle, Phase, worked_repeats
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY, PER_OPERATION
from opjoule.runs.record.run_record import RunRecord, reading

NO_OPERATION = "no operation began in it"


@dataclass(frozen=True)
class StretchEnergy:
    """Energy between two moments; each number has its expanded uncertainty, or a reason why it has none."""

    duration_s: Quantity
    energy_j: Quantity
    """Energy [J], idle power included."""
    marginal_energy_j: Quantity
    """Energy above idle [J]: the idle power of the repeat that contains the stretch's middle is subtracted."""
    power_w: Quantity
    """Mean power [W]."""
    operations: int
    """Number of operations that began in the stretch."""
    energy_per_operation_j: Quantity
    marginal_energy_per_operation_j: Quantity


def stretch_energy(
    cells: Cells,
    sensor: ErrorBounds,
    window: Window,
    idle: IdlePower | None,
    operations: int,
    *,
    withheld: Mapping[str, str],
    why_unstated: str = "",
) -> StretchEnergy:
    """Energy, mean power and energy per operation of one window of a trace.

    Args:
        idle: idle power around the window, if known.
        withheld: group of figures -> the fault that makes them wrong, from run.json.
        why_unstated: reason why no uncertainty is stated; empty if it is.
    Raises: WindowError: the window is empty or reaches outside the trace. GapError: too much of it was lost.
    """
    result = window_energy_j(cells, window, sensor)
    above: Quantity = missing(Cause.NO_IDLE, "J")
    if idle is not None:
        above = marginal_energy(result, idle, sensor).energy
    seconds = Quantity.from_standard(window.duration_s, window.duration_s * result.timebase.relative_u, "s")
    energy = _withheld(result.energy, withheld, (ENERGY,))
    above = _withheld(above, withheld, (ENERGY, ABOVE_IDLE))
    figures = {
        "duration_s": seconds,
        "energy_j": energy,
        "marginal_energy_j": above,
        "power_w": _withheld(result.power, withheld, (ENERGY,)),
        "energy_per_operation_j": _withheld(energy.over(operations, NO_OPERATION), withheld, (PER_OPERATION,)),
        "marginal_energy_per_operation_j": _withheld(above.over(operations, NO_OPERATION), withheld, (PER_OPERATION,)),
    }
    if why_unstated:
        figures = {key: of.without_interval(why_unstated) for key, of in figures.items()}
    return StretchEnergy(operations=operations, **figures)


def _withheld(of: Quantity, withheld: Mapping[str, str], rests_on: Sequence[str]) -> Quantity:
    why = next((withheld[group] for group in rests_on if group in withheld), "")
    return missing(why, of.unit, Cause.WITHHELD) if why else of


@dataclass(frozen=True)
class RunPhase:
    """One phase on the run's time axis."""

    name: str
    repeat: int
    role: str
    """prepare, baseline, work, drain or control."""
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Columns:
    """A table of the run: `arrow` is an Arrow table, `columns["time_s"]` a numpy array of shape (n,)."""

    arrow: pa.Table = field(repr=False)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self.names:
            raise KeyError(f"there is no column '{name}': there are {', '.join(self.names)}")
        return np.asarray(self.arrow.column(name).to_numpy())

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    @property
    def names(self) -> list[str]:
        """Names of the columns; each ends with its unit."""
        return list(self.arrow.column_names)


@dataclass(frozen=True)
class OpenedRun:
    """One record: its numbers, phases and tables, and the energy of any stretch."""

    path: Path
    answer: Answer = field(repr=False)
    """The answer, as in report and summary."""
    known_axis: TimeAxis | None = field(default=None, repr=False)
    """The trace's time axis if it is known without reading the trace."""

    @property
    def title(self) -> str:
        """Subject of the run, with SIMULATED for a simulated run."""
        return self.answer.title

    @property
    def simulated(self) -> bool:
        """True if any number of the run comes from the simulated rig."""
        return self._record.simulated

    @property
    def status(self) -> str:
        """complete, partial or failed."""
        return self._record.status

    @property
    def notices(self) -> list[Notice]:
        """How it ended, its faults and notes: what a reader must know before trusting its figures."""
        return self.answer.warnings

    @property
    def result(self) -> Mapping[str, Any]:
        """Contents of result.json; empty if there is none."""
        return self.answer.result

    def __getitem__(self, path: str) -> Quantity:
        """A number by its path: `run["latency_s.p99"]`. Missing if the run lacks it, KeyError for an unknown path."""
        if not self.answer.knows(path):
            near = suggestion(path, [quantity.key for quantity in self.answer.quantities])
            raise KeyError(f"results have no number '{path}': {near}run.result has all of them")
        return self.answer.quantity(path)

    @property
    def phases(self) -> tuple[RunPhase, ...]:
        """Phases in order of time; none if there is no clock map from board to meter."""
        return self._phases_of(self._record.run.phases)

    @property
    def marked_phases(self) -> tuple[RunPhase, ...]:
        """Phases that the work marked inside its own phase."""
        return self._phases_of(self._record.run.marked_phases)

    def phase(self, name: str, repeat: int = 1) -> RunPhase:
        """One phase by name and repeat. Raises: BadInput: there is none."""
        for phase in self.phases:
            if (phase.name, phase.repeat) == (name, repeat):
                return phase
        names = ", ".join(dict.fromkeys(f"{phase.name} {phase.repeat}" for phase in self.phases)) or "none"
        raise BadInput(f"{self.path} has no phase '{name}' in repeat {repeat}: there are {names}")

    @cached_property
    def power(self) -> Columns:
        """Samples of the supply, corrected by the sensor's calibration: time_s, power_w, current_a, voltage_v, clipped,
        meter_ns; NaN where a conversion was lost.
        """
        trace = self.trace
        columns = {
            "time_s": self.axis.of_meter(trace.meter_ns),
            "power_w": trace.power_w,
            "current_a": trace.current_a,
            "voltage_v": trace.voltage_v,
            "clipped": trace.clipped,
            "meter_ns": trace.meter_ns,
        }
        return Columns(pa.table(columns))

    @property
    def lost(self) -> list[LostStretch]:
        """Stretches without samples, on the time axis."""
        return self.axis.lost

    def time_s(self, board_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Times of the board's clock on the time axis, same shape; NaN if there is no clock map."""
        to_seconds = self.axis.of_board(self._map)
        return np.full(board_ns.shape, np.nan) if to_seconds is None else to_seconds(board_ns)

    @cached_property
    def operations(self) -> Columns:
        """One row per operation of all runs and loads: time_s, and the columns of operations.parquet."""
        return self._timed(self._parquet("operations"))

    @cached_property
    def events(self) -> Columns:
        """Background work of the engine and sync edges: time_s, and the columns of events.parquet."""
        return self._timed(self._parquet("events"))

    @cached_property
    def system(self) -> Columns:
        """Counters of the board: time_s, and the columns of system.parquet."""
        return self._timed(self._parquet("system"))

    def energy(self, start: float | RunPhase, end_s: float | None = None) -> StretchEnergy:
        """Energy from `start` to `end_s` on the run's time axis, or of one phase; counts operations by their start.

        Marginal energies are above the idle power of the repeat that contains the stretch's middle or is nearest.
        Raises: BadInput: no valid stretch. WindowError: it reaches outside the trace. GapError: too much was lost.
        """
        start_s, end_s = (start.start_s, start.end_s) if isinstance(start, RunPhase) else (start, end_s)
        if end_s is None or not (math.isfinite(start_s) and start_s < end_s < math.inf):
            raise BadInput(f"no stretch from {start_s} to {end_s} s: its end must come after its start")
        meter_ns, operations, idle = (self.meter_ns(start_s), self.meter_ns(end_s)), 0, None
        if self._map is None:
            window = Window.of_meter(*meter_ns, self._meter_to_host)
        else:
            start_ns, end_ns = (self._map.inverse().to_target(at_ns) for at_ns in meter_ns)
            window = Window.on_meter(self._map, start_ns, end_ns)
            if (self.path / "operations.parquet").exists():
                first, last = np.searchsorted(self.starts_ns, [start_ns, end_ns])
                operations = int(last - first)
            idle = self._idle_at((start_ns + end_ns) // 2, self._map)
        figures = self.cells, self._bounds, window, idle, operations
        return stretch_energy(*figures, withheld=self._record.withheld, why_unstated=self._unstated)

    @property
    def _record(self) -> RunRecord:
        return self.answer.record

    @cached_property
    def _supply(self) -> tuple[PowerTrace, ErrorBounds | None]:
        with reading(self.path):
            trace, sensor = corrected_trace(self._record)
        if len(trace) < 2:
            raise RecordFault(f"{self.path}: its power trace has fewer than two samples")
        return trace, sensor

    @property
    def trace(self) -> PowerTrace:
        """Corrected samples from which the figures are computed. Raises: RecordFault: unreadable, or fewer than two."""
        return self._supply[0]

    @cached_property
    def _sensor(self) -> ErrorBounds | None:
        return self._supply[1]

    def forget_samples(self) -> None:
        """Drops samples that are not needed for energies; they are read again on demand."""
        _ = self.cells, self.axis, self._sensor
        self.__dict__.pop("_supply", None)

    @property
    def is_corrected(self) -> bool:
        """True if the sensor has a calibration that is valid for the trace."""
        return self._sensor is not None and self._sensor.calibration is not None

    @cached_property
    def cells(self) -> Cells:
        """Cells of the trace, over which energy is integrated. Raises: RecordFault, WindowError: too few samples."""
        return Cells.of(self.trace)

    def meter_ns(self, time_s: float) -> int:
        """A moment of the time axis on the meter's clock [ns]."""
        return self.axis.origin_ns + round(time_s * 1e9)

    @property
    def _bounds(self) -> ErrorBounds:
        return self._sensor or unknown_sensor(float(self.cells.current_a.max()))

    @cached_property
    def _unstated(self) -> str:
        """Reason why no uncertainty is stated; empty if one is."""
        return no_uncertainty(self._record, self._sensor)

    @cached_property
    def axis(self) -> TimeAxis:
        """Time axis: seconds since the trace began."""
        return self.known_axis or TimeAxis.of(self.trace)

    @cached_property
    def _map(self) -> ClockMap | None:
        return board_to_meter(self._record.run)

    @cached_property
    def _meter_to_host(self) -> ClockMap | None:
        return None if self._map is not None or self._unstated else meter_to_host(self._record)

    def _parquet(self, name: str, columns: list[str] | None = None) -> pa.Table:
        with reading(self.path):
            return read_parquet(self._record.intact(f"{name}.parquet"), name, columns)

    def _timed(self, table: pa.Table) -> Columns:
        time_s = self.time_s(table.column("board_ns").to_numpy())
        return Columns(table.add_column(0, "time_s", pa.array(time_s)))

    def _phases_of(self, phases: Sequence[Phase]) -> tuple[RunPhase, ...]:
        to_seconds = self.axis.of_board(self._map) if phases else None
        if to_seconds is None:
            return ()
        ends = np.array([(phase.start_board_ns, phase.end_board_ns) for phase in phases], np.int64)
        made = [
            RunPhase(phase.name, phase.repeat, str(phase.role), *ends_s)
            for phase, ends_s in zip(phases, to_seconds(ends).tolist(), strict=True)
        ]
        return tuple(sorted(made, key=lambda phase: phase.start_s))

    @cached_property
    def starts_ns(self) -> npt.NDArray[np.int64]:
        """Start of each operation on the board's clock [ns], ascending, shape (n,)."""
        table = self._parquet("operations", ["board_ns"])
        return np.asarray(table["board_ns"].to_numpy())

    def _idle_at(self, board_ns: int, clock_map: ClockMap) -> IdlePower | None:
        """Idle power of the repeat nearest to a moment; None if none was measured."""
        phases = self._record.run.phases

        def distance(repeat: int) -> int:
            of_repeat = [phase for phase in phases if phase.repeat == repeat]
            start_ns, end_ns = of_repeat[0].start_board_ns, of_repeat[-1].end_board_ns
            return max(start_ns - board_ns, board_ns - end_ns, 0)

        nearest = min(worked_repeats(phases), key=distance, default=None)
        if nearest is not None and nearest not in self._idle_of:
            cycle = Cycle.of(phases, nearest)
            steady = [baseline.steady for baseline in cycle.baselines] if cycle else []
            ends_ns = [(phase.start_board_ns, phase.end_board_ns) for phase in steady]
            windows = [Window.on_meter(clock_map, *window_ns) for window_ns in ends_ns]
            self._idle_of[nearest] = idle_power(self.cells, windows, self._bounds) if windows else None
        return None if nearest is None else self._idle_of[nearest]

    @cached_property
    def _idle_of(self) -> dict[int, IdlePower | None]:
        return {}


def open_run(path: str | Path) -> OpenedRun:
    """Opens the record in a directory, however its run ended; nothing is written. Raises: RecordFault: unreadable."""
    place = Path(path)
    with reading(place):
        return OpenedRun(place, open_answer(place))
