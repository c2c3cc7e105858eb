"""Setup of a calibration: the sensor, its reference, and the person or board that sets the loads.

Each meter is recorded for the whole session into a record of its own, so that the data behind a calibration are kept. A
point is a stretch of host_ns. Each meter's clock map converts it, so that two meters are read over the same time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opjoule.base.errors import BadInput, RigFault
from opjoule.base.scripts import ROOT, RUNS, script_name
from opjoule.base.terminal import line_of_stdin, say
from opjoule.boards.rig import read_rig
from opjoule.boards.rig_board import CHIPS, LEVELS, PERIOD_NS, LoadSteps, load_steps
from opjoule.cli.record import conclude_capture, trace_record
from opjoule.cli.rig_commands import CalibrateOptions
from opjoule.clocks.exchanges import METER_EXCHANGES, fit_exchanges, read_exchanges
from opjoule.energy.calibration.fitting import CalibrationFault, ReferencePoint
from opjoule.energy.calibration.means import ReadPoint
from opjoule.energy.calibration.reference import (
    Ask,
    Reference,
    TypedQuantity,
    TypedReference,
    other_meter,
    typed_reference,
)
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.shunt_heat import STEADY_S, Heating
from opjoule.meters.registry import open_meter
from opjoule.runs.evaluation.alignment import odd_meter_clock
from opjoule.runs.measuring.open_meter import Calibrations, OpenMeter, Recording, opened_meter
from opjoule.runs.measuring.progress import PhaseProgress

if TYPE_CHECKING:  # only a simulated calibration loads the simulated rig
    from opjoule.bench.simulation.bench import SimulatedBench, SteadyLoad

POLL_S: Final = 0.1
SETTLE_S: Final = 0.5
"""Time from Enter to the first sample that counts."""
DONE: Final = ("done", "q", "quit", "end")
DROP: Final = re.compile(r"drop +(\d{1,3})")
MEND: Final = "; take further points, remove point N with 'drop N', or type 'done' again to give up"
SIMULATED_LOADS_A: Final = (0.0, 0.2, 0.5, 0.8, 1.1, 1.5)
SIMULATED_CHECKS_A: Final = (0.3, 1.2)
UNSEEN_A: Final = (0.35, 1.0)
"""Loads of the simulated setup that are compared with the true value; no point is taken at them."""
PLAY_LIMIT_S: Final = 120.0
SIMULATED_REFERENCE: Final = "simulated multimeter"
SIMULATED_OVER: Final = "0.1,0.1%"
SIMULATED_VOLTAGE: Final = "0.05%+0.02mV"


@dataclass(frozen=True)
class RecordedMeter:
    """A meter that is being recorded."""

    opened: OpenMeter
    recording: Recording

    @property
    def bounds(self) -> ErrorBounds:
        """Bounds of its first sensor; if it is the reference, with its calibration."""
        return self.opened.bounds

    def read(self, stretch_ns: tuple[int, int], period_ns: int = 0) -> ReadPoint:
        """Mean reading over a past stretch [host_ns], corrected if the meter is calibrated.

        Raises: CalibrationFault: the load was not steady, or its samples did not arrive. MeterFault: the meter is gone.
        """
        exchanges = read_exchanges(self.recording.folder / "raw" / METER_EXCHANGES)
        if odd := odd_meter_clock(exchanges, self.bounds):
            raise CalibrationFault(f"{self.opened.name}: {odd}")
        clock_map = fit_exchanges(exchanges, "host", "meter")
        start_ns, end_ns = map(clock_map.to_target, stretch_ns)
        trace = self.recording.trace_past(end_ns)
        if self.bounds.calibration:
            trace = self.bounds.calibration.apply(trace)
        u_ns = clock_map.u_ns(sum(stretch_ns) // 2)
        steady = stretch_ns[1] - stretch_ns[0] >= STEADY_S * 0.99e9  # long enough for the shunt's temperature to settle
        placed = Cells.of(trace), (start_ns, end_ns), self.bounds
        return ReadPoint.of(*placed, u_ns=u_ns, period_ns=period_ns, steady=steady)


@contextmanager
def recorded(name: str, directory: Path, calibrations: Calibrations | None = None) -> Iterator[RecordedMeter]:
    """Opens a meter and records it until the end of the block.

    Args:
        directory: directory of its record, created here.
        calibrations: calibrations that correct a reference meter; None: as delivered.
    Raises: MeterFault, BadInput: from open_meter() and opened_meter().
    """
    with (
        opened_meter(open_meter(name), name, calibrations) as opened,
        trace_record(opened, directory, {"meter": name}) as record,
    ):
        recording = opened.recording(directory, tell_fault=record.add_notices)
        try:
            with recording:
                yield RecordedMeter(opened, recording)
        finally:
            record.finish("complete" if conclude_capture(record, recording.capture.summary) else "failed")


def _load_question(number: int) -> str:
    return f"Point {number}: set a steady load, then press Enter ('done' ends): "


def _asked_load(number: int) -> str:
    answer = line_of_stdin(_load_question(number))
    return DONE[0] if answer is None else answer


def _asked_reading(question: str, quantity: TypedQuantity) -> str | None:
    return line_of_stdin(question)


@dataclass(frozen=True)
class CalibrationSetup:
    """The sensor and its reference, both being recorded."""

    options: CalibrateOptions
    sensor: RecordedMeter
    reference: Reference
    typed: TypedReference | None
    """Readings that are typed at each point; None: nothing is typed."""
    meter: RecordedMeter | None = None
    """The reference, if it is a meter."""
    next_load: Callable[[int], str] = _asked_load
    """Asks for a steady load for the point of this number. Returns the answer; DONE ends, DROP removes a point."""
    ask: Ask = _asked_reading
    steps: LoadSteps | None = None
    """The board that is the load; None: a person sets the load."""
    simulated: SimulatedBench | None = None
    """The simulated bench, which has recorded all loads already."""

    def points(self, check: Callable[[list[ReferencePoint]], object]) -> list[ReferencePoint]:
        """Takes points until the person ends, or the board has played all of its steps.

        If the check fails, the person may take further points or drop some until the next 'done'.

        Args:
            check: raises CalibrationFault if the points do not allow a calibration.
        """
        points: list[ReferencePoint] = []
        if self.steps:
            return [self._point(level) for level in LEVELS]
        refused = False
        while True:
            answer = self.next_load(len(points) + 1).lower()
            try:
                if answer in DONE:
                    if not refused:
                        refused = True
                        check(points)
                    return points
                refused = False
                if drop := DROP.fullmatch(answer):
                    if not 1 <= (number := int(drop[1])) <= len(points):
                        raise BadInput(f"there is no point {number}; points taken so far: {len(points)}")
                    del points[number - 1]
                else:
                    points.append(self._point())
            except (CalibrationFault, BadInput) as fault:
                say(f"  {fault}{MEND if refused else ''}")

    def unseen(self) -> list[tuple[SteadyLoad, ReadPoint]]:
        """Loads of a simulated setup at which no point was taken, each with the sensor's reading."""
        simulated = self.simulated
        return simulated.unseen(self.sensor.bounds, steady=self.options.seconds >= STEADY_S) if simulated else []

    def _point(self, level: int = 0) -> ReferencePoint:
        """Takes one point now; if a board is the load, at this level of its load.

        Raises: CalibrationFault: the load was not steady. BadInput: the typed text is not a reading.
        """
        seconds, period_ns = self.options.seconds, PERIOD_NS if self.steps else 0
        if self.simulated:
            taken = self.simulated.read(self.sensor.bounds, steady=seconds >= STEADY_S)
            return self._compared(taken, None)
        if self.steps:
            say(f"Board busy for {level}/{CHIPS} of the time, {seconds:g} s ...")
            stretch_ns = self.steps(level, seconds)
        else:
            say(f"  recording {seconds:g} s; note what the reference shows at the end ...")
            time.sleep(SETTLE_S)
            start_ns = time.monotonic_ns()
            time.sleep(seconds)
            stretch_ns = start_ns, time.monotonic_ns()
        taken = self.sensor.read(stretch_ns, period_ns)
        return self._compared(taken, self.meter.read(stretch_ns, period_ns) if self.meter else None)

    def _compared(self, taken: ReadPoint, beside: ReadPoint | None) -> ReferencePoint:
        """The point, with the other meter's reading of the same stretch or the reading typed now."""
        read, other = taken.mean, beside.mean if beside else None
        course = taken.course
        if course and beside and beside.course:
            course = course.beside(beside.course)
        say(f"  sensor {read.current_a:.5f} A, {read.voltage_v:.4f} V")
        typed_a, typed_v = self.typed.ask(self.ask) if self.typed else (None, None)
        current = (other.current_a, other.current_u_a) if other else typed_a
        voltage = (other.voltage_v, other.voltage_u_v) if other and self.options.same_voltage else typed_v
        assert current  # one of the two is always there
        return ReferencePoint(
            read.current_a,
            read.current_u_a,
            *current,
            read.voltage_v,
            read.voltage_u_v,
            reference_v=voltage[0] if voltage else None,
            reference_u_v=voltage[1] if voltage else 0.0,
            warmth_a2=course.kept_warmth_a2(Heating()) if course else None,
            course=course,
        )


@contextmanager
def open_setup(folder: Path, options: CalibrateOptions) -> Iterator[CalibrationSetup]:
    """The setup that the command line describes; its meters are recorded until the end of the block.

    Raises: BadInput: the options contradict each other. MeterFault, LinkFault, DeviceFault: something does not answer.
    """
    typed = _typed(options)
    if options.device and (not options.reference_meter or typed):
        raise BadInput("with --device the board plays the loads and nothing is typed: give only --reference-meter")
    name = options.meter or read_rig(options.rig).meter
    keep = _keep(options)
    with recorded(name, keep / "sensor") as sensor:
        if not sensor.bounds.sensor_id:
            raise BadInput(
                f"meter '{name}' does not report a sensor name, so its calibration could not be found "
                "again: add a label after its port, for example label=bench-1"
            )
        if not options.reference_meter:
            assert typed
            yield CalibrationSetup(options, sensor, typed.reference, typed)
            return
        calibrations = Calibrations(folder, options.room_temperature)
        with recorded(options.reference_meter, keep / "reference", calibrations) as meter:
            for notice in meter.opened.sensors.notices:
                say(f"{script_name()}: warning: {notice.text}")
            reference = other_meter(meter.bounds.sensor_id or options.reference_meter, meter.bounds)
            if typed:
                reference = typed.beside(reference)
            board = read_rig(options.rig).device(options.device) if options.device else None
            with load_steps(board, ROOT / "build") if board else nullcontext() as steps:
                yield CalibrationSetup(options, sensor, reference, typed, meter, steps=steps)


@contextmanager
def open_simulated_setup(
    options: CalibrateOptions, loads_a: Sequence[float], unseen_a: Sequence[float] = ()
) -> Iterator[CalibrationSetup]:
    """A simulated sensor, and a simulated multimeter whose readings are entered automatically.

    Args:
        loads_a: loads at which points are taken; unseen_a: other loads, to compare with the true value.
    Raises: BadInput: an accuracy cannot be parsed. RigFault: the simulator does not start.
    """
    from opjoule.bench.simulation.bench import SimulatedBench  # noqa: PLC0415

    typed = _typed(options)
    assert typed
    keep = _keep(options)
    truth = keep / "simulator-truth.json"
    with closing(
        SimulatedBench(typed, loads_a, unseen_a, seconds=options.seconds, root=ROOT, truth=truth, seed=options.seed)
    ) as simulated:

        def next_load(number: int) -> str:
            goes_on = simulated.next_load(number)
            say(f"{_load_question(number)}{f'(SIMULATED) {simulated.load.current_a:g} A' if goes_on else DONE[0]}")
            return "" if goes_on else DONE[0]

        def answer(question: str, quantity: TypedQuantity) -> str:
            shown = simulated.answer(quantity)
            say(f"{question}{shown}")
            return shown

        say(f"SIMULATED: playing {simulated.plays_s:.0f} s of steady loads as fast as this computer can ...")
        limit_s = time.monotonic() + 10 * simulated.plays_s + PLAY_LIMIT_S
        with recorded(simulated.meter, keep / "sensor") as sensor, PhaseProgress() as progress:
            capture = sensor.recording.capture
            progress.phase("SIMULATED loads", simulated.plays_s)
            while not capture.wait(POLL_S):
                progress.advance_to(capture.trace_s)
                if time.monotonic() > limit_s:
                    raise RigFault(
                        "this computer is too busy to simulate the loads: end other programs and start again"
                    )
        simulated.played(keep / "sensor")
        setup = CalibrationSetup(options, sensor, typed.reference, typed)
        yield replace(setup, next_load=next_load, ask=answer, simulated=simulated)


def _typed(options: CalibrateOptions) -> TypedReference | None:
    """Typed readings and their accuracies, from the options; the simulated multimeter has a default accuracy."""
    stated = {"current": options.current, "over": options.over, "voltage": options.voltage}
    if options.simulate and not any(stated.values()):
        stated |= {"over": SIMULATED_OVER, "voltage": SIMULATED_VOLTAGE}
    name = options.reference or (SIMULATED_REFERENCE if options.simulate else "")
    return typed_reference(name, **stated, with_meter=bool(options.reference_meter))


def _keep(options: CalibrateOptions) -> Path:
    return options.keep or RUNS / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-calibration"
