"""Measures known power with a meter that has errors and a board that has its own clock. SIMULATED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from known_pieces import Piece, bursts, wander
from known_work import Choice, Known, work
from opjoule.attribution.activities import background
from opjoule.attribution.attributed_run import Work
from opjoule.attribution.counters import Counters
from opjoule.bench.simulation.parts import Float64Array
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.tables import EVENTS
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.evaluation.alignment import AlignedTrace
from opjoule.runs.evaluation.quantities.definition import RepeatEnergy
from opjoule.runs.evaluation.repeat_energy import repeat_energy
from opjoule.runs.measuring.plan import IDLE_S, LEAD_IN_MAX_S
from opjoule.runs.record.phases import Phase, Role

LEAD_IN_S: Final = min(IDLE_S / 3, LEAD_IN_MAX_S)
"""Time at the start of an idle phase that is left out of its power, as on a board."""
RUN_STARTS_S: Final = IDLE_S + 1.0
BOARD_NS: Final = 1_000_000_000_000
SUPPLY_V, SUPPLY_OHM = 5.1, 0.1


@dataclass(frozen=True)
class Kind:
    """A kind of meter."""

    name: str
    period_s: float
    conversion_s: float
    noise_a: float
    bounds: ErrorBounds


KINDS: Final = (
    Kind("shunt alone, 532 us", 532e-6, 532e-6, 1e-4, replace(ina219_breakout(1.0), voltage_step_v=0.0)),
    Kind("shunt and bus, 1.06 ms", 1064e-6, 532e-6, 1e-4, replace(ina219_breakout(0.5), voltage_step_v=0.0)),
    Kind("5 kHz", 200e-6, 200e-6, 1e-3, replace(ina219_breakout(1.0), voltage_step_v=0.0, current_step_a=1e-5)),
)  # fmt: skip
SLOW: Final = Kind("10 Hz", 0.1, 0.1, 1e-3, replace(ina219_breakout(1.0), voltage_step_v=0.0))
"""For example a board's own power chip, read by its driver."""
GAIN_U, OFFSET_U_A = 4e-4, 1e-4
"""Standard uncertainties that remain after a calibration."""
CALIBRATION: Final = SensorCalibration(
    "known",
    covariance=(
        (GAIN_U**2, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, OFFSET_U_A**2, 0.0),
        (0.0, 0.0, 0.0, 0.0),
    ),
)


@dataclass(frozen=True)
class Sensor:
    """Errors of one sensor, and its stated error bounds."""

    gain: float
    offset_a: float
    bounds: ErrorBounds

    @classmethod
    def calibrated(cls, rng: np.random.Generator, kind: Kind, name: str = "known") -> Sensor:
        """Draws a sensor with the errors that remain after its calibration."""
        gain, offset_a = rng.normal(1, GAIN_U), rng.normal(0, OFFSET_U_A)
        return cls(gain, offset_a, replace(kind.bounds, calibration=replace(CALIBRATION, identity=name)))


@dataclass(frozen=True)
class Experiment:
    """One measurement: the data for the estimate, and the true values."""

    work: Work
    energies: RepeatEnergy
    known: Known
    marginal_j: float
    """True energy above idle."""
    run_j: float
    """True energy of the run's window."""


def experiment(seed: int, choice: Choice) -> Experiment:
    """Draws a run, a board's idle, a meter and clocks, and simulates the measurement."""
    rng = np.random.default_rng(seed)
    kind = SLOW if choice.slow_meter else KINDS[int(rng.integers(len(KINDS)))]
    return watched(rng, kind, work(rng, choice, RUN_STARTS_S, kind.period_s))


def watched(rng: np.random.Generator, kind: Kind, known: Known) -> Experiment:
    """Draws a board's idle, a meter and clocks for a run from RUN_STARTS_S on, and simulates the measurement."""
    end_s = known.settled_s + IDLE_S + 1.0
    idle = [
        wander(rng, end_s + 1, rng.uniform(1.5, 3.5), 10 ** rng.uniform(-3, -2)),
        bursts(rng, end_s + 1, rng.uniform(1, 10), 10 ** rng.uniform(-3, -1.7)),
    ]
    aligned = measured(rng, kind, [*idle, *known.pieces], end_s)
    energies = repeat_energy(aligned, phases(known), 1)
    marginal = energies.marginal
    assert energies.idle and marginal
    operations = _operations(known)
    seen = Work(
        aligned.cells, aligned.board_to_meter, _ns(known.start_s), _ns(known.end_s), _ns(known.settled_s),
        energies.idle, lambda: marginal, operations, background(_events(known)), known.one_thread, _counters(known),
        kind.bounds.seen_fraction,
    )  # fmt: skip
    ends_s = np.array([known.start_s, known.end_s])
    run_j = sum(float(np.diff(piece.until_j(ends_s))[0]) for piece in [*idle, *known.pieces])
    return Experiment(seen, energies, known, float(sum(known.true_j.values())), run_j)


def _ns(time_s: float) -> int:
    return BOARD_NS + round(time_s * 1e9)


def measured(
    rng: np.random.Generator,
    kind: Kind,
    pieces: Sequence[Piece],
    end_s: float,
    sensor: Sensor | None = None,
    name: str = "known",
) -> AlignedTrace:
    """Samples on the meter's clock, the clock map with its error, and the sensor's error bounds.

    Args:
        sensor: None: a calibrated sensor is drawn.
    """
    pace = 1 + rng.uniform(-0.1, 0.1)
    period_s, conversion_s = kind.period_s * pace, kind.conversion_s * pace
    start_s = np.arange(0.05, end_s - 0.05, period_s)
    late_s = rng.uniform(5e-6, 60e-6)
    edges_s = np.stack([start_s, start_s + conversion_s]) - late_s
    drawn_j = sum(piece.until_j(edges_s.ravel()) for piece in pieces)
    power_w = np.diff(np.reshape(drawn_j, (2, -1)), axis=0)[0] / conversion_s
    current_a = (SUPPLY_V - np.sqrt(SUPPLY_V**2 - 4 * SUPPLY_OHM * power_w)) / (2 * SUPPLY_OHM)
    voltage_v = SUPPLY_V - SUPPLY_OHM * current_a
    sensor = sensor or Sensor.calibrated(rng, kind, name)
    read_a = current_a * sensor.gain + sensor.offset_a + rng.normal(0, kind.noise_a, current_a.size)
    step_a = kind.bounds.current_step_a
    read_a = np.rint(read_a / step_a) * step_a
    rate = 1 + rng.uniform(-5e-3, 5e-3)
    u_ns = 10 ** rng.uniform(3, np.log10(3e4))
    moved_ns = rng.normal(0, u_ns)
    centre_ns = np.rint((start_s + conversion_s / 2) * rate * 1e9 + moved_ns).astype(np.int64) + 10**10
    trace = PowerTrace.of(centre_ns, read_a, voltage_v)
    to_meter = ClockMap("board", "meter", BOARD_NS, 10**10, rate, u_ns, 1e-9, "truth", 0, 100)
    return AlignedTrace(Cells.of(trace), sensor.bounds, to_meter)


def phases(known: Known) -> list[Phase]:
    """Phases idle, run, settle and idle, on the board's clock."""
    begin, end, settled = (_ns(moment_s) for moment_s in (known.start_s, known.end_s, known.settled_s))
    idle_ns = round(IDLE_S * 1e9)
    return [
        Phase("idle-before", 1, begin - idle_ns, begin, lead_in_s=LEAD_IN_S, role=Role.BASELINE),
        Phase("run", 1, begin, end, known.kind.size, role=Role.WORK),
        Phase("settle", 1, end, settled, role=Role.DRAIN),
        Phase("idle-after", 1, settled, settled + idle_ns, lead_in_s=LEAD_IN_S, role=Role.BASELINE),
    ]


def _operations(known: Known) -> OperationTable:
    count = known.kind.size
    return OperationTable(
        BOARD_NS + np.rint(known.begin_s * 1e9).astype(np.int64),
        np.rint(known.length_s * 1e9).astype(np.int64),
        known.kind,
        known.thread,
        np.full(count, 1000, np.int64),
        np.ones(count, np.bool_),
        known.kinds,
    ).sorted()


def _events(known: Known) -> pa.Table:
    rows = [
        {"board_ns": _ns(start), "end_board_ns": _ns(end), "event": name}
        for name, (starts, ends) in known.events.items()
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)


def _counters(known: Known) -> Counters:
    moments_s, counted = known.write_counts
    read_s: Float64Array = np.arange(moments_s[0], moments_s[-1], 0.1)
    board_ns = BOARD_NS + np.rint(read_s * 1e9).astype(np.int64)
    nothing = np.zeros(read_s.size)
    return Counters(board_ns, np.interp(read_s, moments_s, counted), nothing, nothing)
