"""`host/calibrate.py`: takes points, fits them and writes the sensor's file; or checks a calibration, or lists all."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.errors import FAULTY_EXIT, BadInput
from opjoule.base.scripts import CALIBRATIONS, ROOT
from opjoule.cli.calibration_setup import (
    SIMULATED_CHECKS_A,
    SIMULATED_LOADS_A,
    UNSEEN_A,
    CalibrationSetup,
    open_setup,
    open_simulated_setup,
)
from opjoule.cli.rig_commands import CalibrateOptions, CalibrationsOptions
from opjoule.energy.calibration.calibration_file import (
    CalibratedSensor,
    find_calibration,
    new_file,
    read_calibration,
    write_calibration,
)
from opjoule.energy.calibration.fitting import CalibrationFault, Fitted, calibrate, deviations
from opjoule.energy.calibration.means import ReadPoint
from opjoule.energy.error_bounds import CHIP_PER_K, SHUNT_PER_K, SQRT3, ErrorBounds
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.pages.report.pictures import write_residuals

if TYPE_CHECKING:  # only a simulated calibration loads the simulated rig
    from opjoule.bench.simulation.bench import SteadyLoad

SIMULATED_FOLDER: Final = ROOT / "build" / "simulated-calibrations"
"""Folder of the simulated sensors' files; no measurement reads it."""


def run_calibrate(options: CalibrateOptions) -> int:
    """Calibrates a sensor; exit status 0. Raises: BadInput, CalibrationFault, MeterFault: one line each."""
    folder = _folder(options)
    with _opened(folder, options, SIMULATED_LOADS_A, UNSEEN_A) as setup:
        # Fitting here shows unusable points while the person who can replace them is still there.
        taken = setup.points(lambda points: calibrate(points, setup.reference, setup.sensor.bounds, ""))
        loads = setup.unseen()
    bounds = setup.sensor.bounds
    fitted = calibrate(taken, setup.reference, bounds, "")
    shunt_ohm = bounds.shunt.ohm if bounds.shunt else None
    stated_per_k = bounds.shunt.per_k if bounds.shunt else SHUNT_PER_K
    shunt_per_k = stated_per_k if options.shunt_ppm is None else options.shunt_ppm * 1e-6
    file = new_file(
        fitted,
        CalibratedSensor(bounds.sensor_id, bounds.model, bounds.current_max_a, shunt_ohm),
        setup.reference,
        simulated=setup.sensor.opened.identity.simulated,
        date_utc=datetime.now(UTC).replace(microsecond=0),
        temperature_c=options.room_temperature,
        gain_per_k=shunt_per_k + CHIP_PER_K,
    )
    path = write_calibration(folder, file)
    picture = write_residuals(path, read_calibration(path))
    outcome = _outcome(fitted, bounds)
    held = [_against_truth(*load, bounds, file.at(options.room_temperature)) for load in loads]
    if options.json:
        outcome |= {"against_truth": held} if held else {}
        print(json.dumps({"file": str(path), "picture": str(picture), "simulated": file.simulated, **outcome}))
        return 0
    print(f"{file.title}")
    for line in outcome["lines"]:
        print(f"  {line}")
    print(f"calibration {path}\nresiduals   {picture}")
    if options.simulate:
        _tell_truth(held, check_command(options))
    else:
        print("Every measurement with this sensor uses it from now on.")
    return 0


def run_check(options: CalibrateOptions) -> int:
    """Checks a calibration; 0 if valid, 6 after drift. Raises: BadInput, CalibrationFault, MeterFault: one line."""
    folder = _folder(options)
    with _opened(folder, options, SIMULATED_CHECKS_A) as setup:
        bounds, simulated = setup.sensor.bounds, setup.sensor.opened.identity.simulated
        room_c = options.room_temperature
        calibration = find_calibration(folder, bounds, simulated=simulated, temperature_c=room_c)
        if calibration is None:
            raise BadInput(f"{folder} contains no calibration of sensor {bounds.sensor_id}: calibrate it first")
        taken = setup.points(lambda points: None)
    if not taken:
        raise CalibrationFault("no point was taken, so drift cannot be judged")
    all_of = deviations(taken, setup.reference, calibration.file.at(options.room_temperature))
    drifted = any(deviation.has_drifted for deviation in all_of)
    if options.json:
        points = [{**asdict(deviation), "has_drifted": deviation.has_drifted} for deviation in all_of]
        print(json.dumps({"file": str(calibration.path), "drifted": drifted, "points": points}))
        return FAULTY_EXIT if drifted else 0
    print(f"{calibration.file.title}")
    for notice in calibration.notices:
        print(f"  {notice.text}")
    for off in all_of:
        print(
            f"  {off.quantity} at {off.at:.4g} {off.unit}: off by {1e3 * off.value:+.3g} m{off.unit}, "
            f"±{1e3 * off.u:.2g} m{off.unit}{'  DRIFTED' if off.has_drifted else ''}"
        )
    print(
        "The sensor has drifted: calibrate it again. Runs since the calibration may be off by as much."
        if drifted
        else "The calibration is still valid."
    )
    return FAULTY_EXIT if drifted else 0


def _opened(
    folder: Path, options: CalibrateOptions, loads_a: Sequence[float], unseen_a: Sequence[float] = ()
) -> AbstractContextManager[CalibrationSetup]:
    """The setup that the command line describes; a simulated one plays these loads."""
    return open_simulated_setup(options, loads_a, unseen_a) if options.simulate else open_setup(folder, options)


def _folder(options: CalibrationsOptions) -> Path:
    return options.folder or (SIMULATED_FOLDER if options.simulate else CALIBRATIONS)


def _against_truth(
    load: SteadyLoad, taken: ReadPoint, delivered: ErrorBounds, calibration: SensorCalibration
) -> dict[str, float | str]:
    """Power of a simulated load, as delivered and calibrated, with relative errors and expanded uncertainties."""
    voltage = calibration.voltage or Correction()
    true_w, read = load.current_a * load.voltage_v, taken.mean
    calibrated_w = calibration.steady_current_a(read.current_a) * voltage(read.voltage_v)
    heat = delivered.heating_max_per_a2 * load.current_a**2 / SQRT3
    delivered_u = math.hypot(delivered.power_gain_u, heat, delivered.current_offset_u_a / load.current_a)
    return {
        "simulated": "SIMULATED",
        "current_a": load.current_a,
        "true_w": true_w,
        "delivered_error": read.current_a * read.voltage_v / true_w - 1,
        "delivered_u": COVERAGE_FACTOR * delivered_u,
        "calibrated_error": calibrated_w / true_w - 1,
        "calibrated_u": COVERAGE_FACTOR * calibration.power_u(load.current_a, load.voltage_v),
    }


def check_command(options: CalibrateOptions) -> str:
    """The command that checks the simulated sensor which these options calibrate."""
    stated = {
        "--seed": options.seed,
        "--folder": options.folder,
        "--room-temperature": options.room_temperature,
    }
    given = [word for name, value in stated.items() if value is not None for word in (name, f"{value}")]
    return shlex.join(["host/calibrate.py", "check", "--simulate", *given])


def _tell_truth(held: Sequence[dict[str, Any]], next_command: str) -> None:
    print("SIMULATED: power at loads between the points, compared with the truth (stated: k = 2)")
    for load in held:
        parts = [
            f"{words} {100 * load[f'{key}_error']:+.3f} % (stated ±{100 * load[f'{key}_u']:.2g} %)"
            for words, key in (("as delivered", "delivered"), ("calibrated", "calibrated"))
        ]
        print(f"  {load['current_a']:g} A, {load['true_w']:.4f} W: {', '.join(parts)}")
    print(f"No measurement uses this calibration. Next: {next_command}; with hardware: docs/how-to/calibrate.md")


def _outcome(fitted: Fitted, bounds: ErrorBounds) -> dict[str, Any]:
    middle_a = max(point.reference_a for point in fitted.points) / 2
    middle_v = sum(point.voltage_v for point in fitted.points) / len(fitted.points)
    u = COVERAGE_FACTOR * fitted.calibration.power_u(middle_a, middle_v)
    channels = {"current": ("A", fitted.current), "voltage": ("V", fitted.voltage)}
    lines = [
        f"{name}: {100 * (fit.gain - 1):+.3f} % and {1e3 * fit.offset:+.2f} m{unit}, residuals up to "
        f"{1e3 * max(abs(fit.residuals)):.2g} m{unit}"
        for name, (unit, fit) in channels.items()
        if fit
    ]
    heating = fitted.calibration.heating
    if heating.per_a2:
        lines.append(
            f"heating: {100 * heating.per_a2 * middle_a**2:+.3f} % at {middle_a:.2g} A, time constant "
            f"{heating.tau_s:.2g} s (known to a factor of {math.exp(COVERAGE_FACTOR * heating.ln_tau_u):.2g})"
        )
    before = COVERAGE_FACTOR * bounds.power_gain_u
    lines.append(
        f"power at {middle_a:.2g} A: ±{100 * u:.2g} % (k = 2), changes of room temperature not included; before: "
        f"±{100 * before:.2g} %"
    )
    return {
        "power_u": u,
        "power_u_before": before,
        "chance": {name: fit.chance for name, (_, fit) in channels.items() if fit},
        "heating": asdict(heating),
        "points": [asdict(replace(point, course=None)) for point in fitted.points],
        "lines": [*lines, *fitted.notes],
    }


def run_show(options: CalibrationsOptions) -> int:
    """Lists the calibrations; exit status 0."""
    folder = _folder(options)
    files = [(path, read_calibration(path)) for path in sorted(folder.glob("*.toml"))]
    now_utc = datetime.now(UTC)
    if options.json:
        entries = [
            {"file": str(path), "sensor": file.sensor.id, "date_utc": file.date_utc.isoformat()} for path, file in files
        ]
        print(json.dumps(entries))
        return 0
    for path, file in files:
        print(f"{path}: {file.title}, {(now_utc - file.date_utc).days} days old")
    if not files:
        print(f"{folder} contains no calibration; host/calibrate.py --help explains how to make one")
    return 0
