"""`host/calibrate.py`: takes the points, fits, writes the file of the sensor; or checks it, or lists what there is."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from opjoule.calibrating.calibration_file import (
    CHIP_PER_K,
    SHUNT_PER_K,
    CalibratedSensor,
    new_file,
    read_calibration,
)
from opjoule.calibrating.calibration_text import write_calibration
from opjoule.calibrating.drift import deviations
from opjoule.calibrating.fitting import CalibrationFault, Fitted, ReferencePoint, calibrate
from opjoule.calibrating.library import find_calibration
from opjoule.calibrating.reference import Reference, other_meter
from opjoule.calibrating.typed import TypedReference, typed_reference
from opjoule.cli.planning import CALIBRATIONS, ROOT
from opjoule.devices.load_steps import CHIPS, LEVELS, PERIOD_NS, LoadSteps, load_steps
from opjoule.devices.rig_file import read_rig
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.errors import FAULTY_EXIT, BadInput
from opjoule.measurement.calibration_points import RecordedMeter, Stretch, recorded
from opjoule.measurement.known_sensors import Calibrations
from opjoule.report.calibration_figure import write_residuals
from opjoule.units import COVERAGE_FACTOR

SETTLE_S: Final = 0.5
"""From Enter to the first sample that counts."""
DONE: Final = ("done", "q", "quit", "end")


@dataclass(frozen=True)
class _Bench:
    """What stands on the desk: the sensor, and what it is held against."""

    sensor: RecordedMeter
    reference: Reference
    typed: TypedReference | None
    """What is typed at each point; None: nothing."""
    meter: RecordedMeter | None
    """The reference, where it is a meter."""
    same_voltage: bool
    seconds: float
    steps: LoadSteps | None = None
    """A board that is the load; None: the user sets one."""

    def point(self, level: int = 0) -> ReferencePoint:
        """Takes one, now; of the board's load at this level, where a board is the load.

        Raises: CalibrationFault: the load moved. BadInput: what was typed is no reading.
        """
        stretch = self._stretch(level)
        period_ns = PERIOD_NS if self.steps else 0
        read = self.sensor.mean(stretch, period_ns)
        other = self.meter.mean(stretch, period_ns) if self.meter else None
        _say(f"  sensor {read.current_a:.5f} A, {read.voltage_v:.4f} V")
        typed_a, typed_v = self.typed.ask(_asked) if self.typed else (None, None)
        current = (other.current_a, other.current_u_a) if other else typed_a
        voltage = (other.voltage_v, other.voltage_u_v) if other and self.same_voltage else typed_v
        assert current  # one of the two is always there
        return ReferencePoint(
            *(read.current_a, read.current_u_a, *current, read.voltage_v, read.voltage_u_v),
            reference_v=voltage[0] if voltage else None,
            reference_u_v=voltage[1] if voltage else 0.0,
        )

    def _stretch(self, level: int) -> Stretch:
        if self.steps:
            _say(f"Board busy {level} of {CHIPS} parts of the time, {self.seconds:g} s ...")
            return Stretch(*self.steps.play(level, self.seconds))
        _say(f"  recording {self.seconds:g} s; note what the reference shows ...")
        time.sleep(SETTLE_S)
        start_ns = time.monotonic_ns()
        time.sleep(self.seconds)
        return Stretch(start_ns, time.monotonic_ns())

    def points(self) -> list[ReferencePoint]:
        """Takes points until the user has enough, or the board has played all of its steps."""
        found: list[ReferencePoint] = []
        if self.steps:
            return [self.point(level) for level in LEVELS]
        while _goes_on(_asked(f"Point {len(found) + 1}: set a steady load, then Enter ('done' ends): ")):
            try:
                found.append(self.point())
            except (CalibrationFault, BadInput) as fault:
                _say(f"  {fault}")
        return found


def run_calibrate(options: argparse.Namespace) -> int:
    """Calibrates, checks or lists; 0 if all is well, 6 where a check found a drift.

    Raises: BadInput, CalibrationFault, MeterFault: one line each.
    """
    folder = options.folder or CALIBRATIONS
    if options.action == "show":
        return _show(folder, as_json=options.json)
    name = options.meter or read_rig(options.rig).meter
    with _bench(name, folder, options) as bench:
        taken = bench.points()
    if options.action == "check":
        return _check(bench, taken, folder, options)
    return _calibrate(bench, taken, folder, options)


@contextmanager
def _bench(name: str, folder: Path, options: argparse.Namespace) -> Iterator[_Bench]:
    keep = options.keep or ROOT / "runs" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-calibration"
    typed = typed_reference(
        options.reference or "",
        current=options.current,
        over=options.over,
        voltage=options.voltage,
        with_meter=bool(options.reference_meter),
    )
    if options.device and (not options.reference_meter or typed):
        raise BadInput(
            "--device plays its load by itself, and nothing is typed: give --reference-meter alone"
        )
    with recorded(name, keep / "sensor") as sensor:
        if not sensor.bounds.sensor_id:
            raise BadInput(
                f"meter '{name}' says no name by which its sensor's calibration could be found again: give it a "
                "label, for example label=bench-1 behind its port"
            )
        if not options.reference_meter:
            assert typed
            yield _Bench(sensor, typed.reference, typed, None, False, options.seconds)
            return
        calibrations = Calibrations(folder, options.temperature)
        with recorded(options.reference_meter, keep / "reference", calibrations) as meter:
            reference = other_meter(meter.bounds.sensor_id or options.reference_meter, meter.bounds)
            if typed:
                reference = typed.beside(reference)
            bench = _Bench(sensor, reference, typed, meter, options.same_voltage, options.seconds)
            if not options.device:
                yield bench
                return
            board = read_rig(options.rig).device(options.device)
            with load_steps(board, ROOT / "build") as steps:
                yield replace(bench, steps=steps)


def _calibrate(bench: _Bench, taken: list[ReferencePoint], folder: Path, options: argparse.Namespace) -> int:
    bounds = bench.sensor.bounds
    fitted = calibrate(taken, bench.reference, bounds, "")
    shunt_ohm = bounds.shunt.ohm if bounds.shunt else None
    shunt_per_k = SHUNT_PER_K if options.shunt_ppm is None else options.shunt_ppm * 1e-6
    file = new_file(
        fitted,
        CalibratedSensor(bounds.sensor_id, bounds.model, shunt_ohm, bounds.current_max_a),
        bench.reference,
        simulated=bench.sensor.identity.simulated,
        date_utc=datetime.now(UTC).replace(microsecond=0),
        temperature_c=options.temperature,
        gain_per_k=shunt_per_k + CHIP_PER_K,
    )
    path = write_calibration(folder, file)
    picture = write_residuals(path, read_calibration(path))
    told = _told(fitted, bounds)
    if options.json:
        print(json.dumps({"file": str(path), "picture": str(picture), "simulated": file.simulated, **told}))
        return 0
    print(f"{file.title}")
    for line in told["lines"]:
        print(f"  {line}")
    print(f"calibration {path}\nresiduals   {picture}\nIt is used from now on, whenever this sensor is read.")
    return 0


def _told(fitted: Fitted, bounds: ErrorBounds) -> dict[str, Any]:
    """What came out, in numbers and in lines."""
    middle_a = max(each.reference_a for each in fitted.points) / 2
    middle_v = sum(each.voltage_v for each in fitted.points) / len(fitted.points)
    u = COVERAGE_FACTOR * fitted.calibration.power_u(middle_a, middle_v)
    channels = {"current": ("A", fitted.current), "voltage": ("V", fitted.voltage)}
    lines = [
        f"{name}: {100 * (fit.gain - 1):+.3f} % and {1e3 * fit.offset:+.2f} m{unit}, residuals up to "
        f"{1e3 * max(abs(fit.residuals)):.2g} m{unit}"
        for name, (unit, fit) in channels.items()
        if fit
    ]
    before = COVERAGE_FACTOR * bounds.power_gain_u
    lines.append(
        f"power at {middle_a:.2g} A: ±{100 * u:.2g} % (k = 2), without the room's temperature; before: "
        f"±{100 * before:.2g} %"
    )
    return {
        "power_u": u,
        "power_u_before": before,
        "chance": {name: fit.chance for name, (_, fit) in channels.items() if fit},
        "points": [asdict(each) for each in fitted.points],
        "lines": [*lines, *fitted.notes],
    }


def _check(bench: _Bench, taken: list[ReferencePoint], folder: Path, options: argparse.Namespace) -> int:
    bounds = bench.sensor.bounds
    found = find_calibration(
        folder, bounds, simulated=bench.sensor.identity.simulated, temperature_c=options.temperature
    )
    if found is None:
        raise BadInput(f"{folder} holds no calibration of sensor {bounds.sensor_id}: calibrate it first")
    if not taken:
        raise CalibrationFault("no point was taken: whether the sensor has drifted cannot be told")
    all_of = deviations(taken, bench.reference, found.file.at(options.temperature))
    drifted = any(each.has_drifted for each in all_of)
    if options.json:
        points = [{**asdict(each), "has_drifted": each.has_drifted} for each in all_of]
        print(json.dumps({"file": str(found.path), "drifted": drifted, "points": points}))
        return FAULTY_EXIT if drifted else 0
    print(f"{found.file.title}")
    for line in found.warnings:
        print(f"  {line}")
    for each in all_of:
        print(
            f"  {each.quantity} at {each.at:.4g} {each.unit}: off by {1e3 * each.value:+.3g} m{each.unit}, "
            f"±{1e3 * each.u:.2g} m{each.unit}{'  DRIFTED' if each.has_drifted else ''}"
        )
    print(
        "It has drifted: calibrate it anew; runs since the calibration may be off by as much."
        if drifted
        else "It holds."
    )
    return FAULTY_EXIT if drifted else 0


def _show(folder: Path, *, as_json: bool) -> int:
    files = [(path, read_calibration(path)) for path in sorted(folder.glob("*.toml"))]
    now_utc = datetime.now(UTC)
    if as_json:
        entries = [
            {"file": str(path), "sensor": each.sensor.sensor_id, "date_utc": each.date_utc.isoformat()}
            for path, each in files
        ]
        print(json.dumps(entries))
        return 0
    for path, each in files:
        print(f"{path}: {each.title}, {(now_utc - each.date_utc).days} days old")
    if not files:
        print(f"{folder} holds no calibration: host/calibrate.py --help says how one is made")
    return 0


def _asked(question: str) -> str | None:
    """An answer on stdin, which may be a file; None at its end."""
    print(question, end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return answer.strip() if answer else None


def _goes_on(answer: str | None) -> bool:
    return answer is not None and answer.lower() not in DONE


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
