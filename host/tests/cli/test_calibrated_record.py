"""A record of a calibrated sensor: run.json keeps the calibration, figures are corrected by it, raw files are not."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from calibrated_sensor import SENSOR_ID, TrueReference, TrueSensor, bench_reference, points
from msgspec import structs
from opjoule.base.errors import BadInput
from opjoule.base.notices import NoticeKind
from opjoule.base.units import from_json
from opjoule.boards.rig import read_rig
from opjoule.cli.doctor import calibration_findings
from opjoule.energy.calibration.calibration_file import (
    CalibratedSensor,
    new_file,
    read_calibration,
    write_calibration,
)
from opjoule.energy.calibration.fitting import CalibrationFault, calibrate
from opjoule.energy.comparison import ratio
from opjoule.energy.error_bounds import Shunt
from opjoule.energy.trace.journal import TraceJournal, read_trace
from opjoule.meters.chips import INA219
from opjoule.meters.interface import Meter, MeterIdentity, SensorIdentity
from opjoule.meters.registry import open_meter, sensor_ids
from opjoule.pages.report.terminal import remedies
from opjoule.pages.report.timeline import read_timeline
from opjoule.results.answer import open_answer
from opjoule.runs.evaluation.trace_result import conclude_trace
from opjoule.runs.measuring.open_meter import Calibrations, KnownSensors
from opjoule.runs.record.result import read_result
from opjoule.runs.record.run_record import RunRecord

NAME = "serial:/dev/ttyACM0,label=bench-1"
SENSOR = TrueSensor(1.011, -1.2e-3, 0.998)
IDENTITY = MeterIdentity(
    kind="serial",
    place="/dev/ttyACM0",
    protocol_version=2,
    firmware_version="0.1.0",
    board="atmega328p",
    serial_number="0102",
    reset_cause="power-on",
    tick_hz=2_000_000,
    sensors=(SensorIdentity("ina219", 0x40), SensorIdentity("ina219", 0x41)),
)


class OneSensor(Meter):
    """A meter as far as its bounds go."""

    def error_bounds(self):
        return replace(INA219.error_bounds(3, 0.5, Shunt()), heating_max_per_a2=0.0)

    def further_error_bounds(self):
        return {}


def known(folder, name=NAME, temperature_c=22.0):
    return KnownSensors.of(OneSensor(), name, IDENTITY, Calibrations(folder, temperature_c))


@pytest.fixture
def folder(tmp_path):
    bounds = OneSensor().error_bounds()
    fitted = calibrate(points(SENSOR, TrueReference(bench_reference())), bench_reference(), bounds, "")
    sensor = CalibratedSensor(SENSOR_ID, "INA219", bounds.current_max_a, 0.1)
    file = new_file(fitted, sensor, bench_reference(), simulated=False, date_utc=datetime.now(UTC), temperature_c=22.0)
    write_calibration(tmp_path / "calibration", file)
    return tmp_path / "calibration"


def recorded(directory, sensors, current_a, voltage_v=5.0):
    """A record of a steady load as the sensor reads it."""
    record = RunRecord.create(directory, {"meter": NAME}, simulated=False)
    record.update(found={"meter": IDENTITY})
    record.add_notices(*sensors.notices)
    record.update(**sensors.entries())
    journal = TraceJournal(directory)
    stamps = np.arange(4000, dtype=np.int64) * 1_000_000
    rng = np.random.default_rng(1)
    read_a = SENSOR.current(rng.normal(current_a, 1e-3, stamps.size))
    journal.append_samples(stamps, read_a, SENSOR.voltage(np.full(stamps.size, voltage_v)))
    journal.close()
    assert conclude_trace(record), record.faults
    record.finish("complete")
    return RunRecord.open(directory)


def test_a_calibration_is_found_by_the_sensors_name_kept_in_run_json_and_applied_when_the_trace_is_read(
    tmp_path, folder
):
    record = recorded(tmp_path / "run", known(folder), 0.8)
    assert record.run.sensor.calibration.identity == read_calibration(folder / f"{SENSOR_ID}.toml").calibration.identity
    assert "against DMM 7" in record.run.found.calibrations[SENSOR_ID]
    result = read_result(tmp_path / "run").numbers
    assert result["power_w"]["value"] == pytest.approx(4.0, rel=1e-3)
    assert abs(result["power_w"]["value"] - 4.0) < result["power_w"]["u"] < 4.0 * 3e-3
    raw = read_trace(tmp_path / "run")
    assert raw.current_a.mean() == pytest.approx(SENSOR.current(0.8), rel=1e-4)
    shown = read_timeline(record).tracks["power"].mean["power_w"]
    assert np.nanmean(shown) == pytest.approx(4.0, rel=1e-3)


def test_the_result_says_what_it_shares_so_that_two_runs_are_compared_without_it(tmp_path, folder):
    sides = []
    for number, current_a in enumerate((0.8, 0.824)):
        recorded(tmp_path / f"run-{number}", known(folder), current_a)
        result = read_result(tmp_path / f"run-{number}").numbers
        of_energy = (
            from_json(result["energy_j"])
            .of_repeats([], result["shared"]["budget"])
            .scale(1 / result["duration_s"]["value"])
        )
        # A power has no timebase in it, which is this meter's own and poor.
        sides.append(from_json(result["power_w"]).of_repeats([], of_energy.shared))
    alone = [structs.replace(side, shared={}) for side in sides]
    assert ratio(*sides).value == pytest.approx(0.8 / 0.824, rel=2e-4)
    assert ratio(*sides).covers(0.8 / 0.824)
    assert ratio(*sides).u < 0.5 * ratio(*alone).u


def test_currents_beyond_the_calibration_are_not_corrected_and_the_fault_says_so(tmp_path, folder):
    record = recorded(tmp_path / "run", known(folder), 2.0)
    [fault] = record.faults
    assert "100 % of the charge" in fault.line and fault.kind is NoticeKind.NOT_CALIBRATED
    result = read_result(tmp_path / "run").numbers
    assert result["power_w"]["value"] == pytest.approx(5.0 * SENSOR.current(2.0) / 0.998, rel=1e-3)
    assert result["power_w"]["u"] > 0.01 * result["power_w"]["value"]
    assert not any(name.startswith("calibration") for name in result["shared"]["budget"])


def test_a_calibration_of_another_setting_is_refused_before_anything_is_recorded(folder):
    path = folder / f"{SENSOR_ID}.toml"
    path.write_text(path.read_text().replace("shunt_ohm = 0.1", "shunt_ohm = 0.02"))
    with pytest.raises(CalibrationFault, match=r"shunt=0\.02, .* 0\.1"):
        known(folder)


def test_a_warm_room_is_warned_of_above_the_figures_and_widens_the_interval(tmp_path, folder):
    calm, warm = known(folder), known(folder, temperature_c=35.0)
    assert calm.notices == [] and "it is 35 °C" in warm.notices[0].line
    record = recorded(tmp_path / "warm", warm, 0.8)
    assert record.run.notices == tuple(warm.notices)
    recorded(tmp_path / "calm", calm, 0.8)
    u = [read_result(tmp_path / name).numbers["power_w"]["u"] for name in ("calm", "warm")]
    assert u[1] > 2 * u[0]


def test_advice_leads_to_calibrating_until_the_sensor_is_calibrated(tmp_path, folder):
    advice = []
    for name, sensors in (("with", known(folder)), ("without", known(tmp_path / "none"))):
        recorded(tmp_path / name, sensors, 0.8)
        advice.append(remedies(open_answer(tmp_path / name), "longer"))
    assert any("better reference" in line for line in advice[0]) or not any("calibrate" in line for line in advice[0])
    assert "host/calibrate.py" in advice[1][0]


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        (NAME, ("bench-1@0x40",)),
        (NAME + ",sensors=1+0", ("bench-1@0x41", "bench-1@0x40")),
        ("serial:/dev/ttyACM0", ("",)),
        ("monsoon", ("monsoon-0102",)),
        ("monsoon:label=left", ("left",)),
    ],
)
def test_a_sensor_is_called_by_label_and_address_or_by_its_meters_own_number(name, ids):
    assert sensor_ids(name, IDENTITY) == ids


@pytest.mark.parametrize("label", ["", "../x", "a b", "-x", "x" * 49, "a/b"])
def test_a_label_that_is_no_name_is_refused(label):
    name = f"serial:/dev/ttyACM0,label={label}"
    with pytest.raises(BadInput, match=r"label must be .*bench-1"):
        open_meter(name)


def test_files_of_two_sensors_do_not_meet(folder):
    assert json.loads(json.dumps(sorted(p.name for p in Path(folder).iterdir()))) == [f"{SENSOR_ID}.toml"]
    assert known(folder, NAME.replace("bench-1", "bench-2")).found == {}


def test_the_doctor_names_the_calibration_or_the_way_to_one(tmp_path, folder):
    def details(sensors):
        findings = list(calibration_findings(sensors))
        assert all(finding.kind is not NoticeKind.MEND for finding in findings)
        return [finding.line for finding in findings]

    assert details(known(folder)) == [known(folder).found[0].file.title]
    assert "it is 35 °C" in details(known(folder, temperature_c=35.0))[1]
    [without] = details(known(tmp_path / "none"))
    assert without.startswith(f"sensor {SENSOR_ID} has none") and "host/calibrate.py" in without
    [nameless] = details(known(folder, "serial:/dev/ttyACM0"))
    assert "add label=NAME" in nameless


@pytest.mark.parametrize(("text", "good"), [("22", True), ("-3.5", True), ('"warm"', False), ("300", False)])
def test_the_rooms_temperature_is_read_from_rig_toml_or_refused_in_one_line(tmp_path, text, good):
    path = tmp_path / "rig.toml"
    path.write_text(f'[meter]\nport = "{NAME}"\n[room]\ntemperature_c = {text}\n')
    if good:
        assert read_rig(path).room.temperature_c == float(text)
        return
    with pytest.raises(BadInput, match=r"\[room\] temperature_c must be .* -40 to 85"):
        read_rig(path)
