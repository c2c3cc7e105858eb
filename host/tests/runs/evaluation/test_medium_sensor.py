"""A second sensor in the medium's own supply: medium and the rest apart, each with its interval."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from calibrated_sensor import TrueReference, TrueSensor, bench_reference, points
from opjoule.base.errors import BadInput
from opjoule.boards.medium import Medium
from opjoule.boards.rig import read_rig
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.calibration.calibration_file import CalibratedSensor, new_file, write_calibration
from opjoule.energy.calibration.fitting import calibrate
from opjoule.energy.cells import Cells
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.tables import EVENTS
from opjoule.energy.trace.journal import read_trace
from opjoule.meters.interface import MeterIdentity, SensorIdentity
from opjoule.meters.serial.options import SIMULATED_SENSOR
from opjoule.runs.evaluation.alignment import AlignedTrace, Alignment
from opjoule.runs.evaluation.evidence import CorrectedTrace
from opjoule.runs.evaluation.summary import AlignedRun, build_result, sensor_energies
from opjoule.runs.measuring.open_meter import Calibrations, KnownSensors
from opjoule.runs.record.run_record import RunRecord
from rig_session import rig_sim, write_profile
from usual_phases import usual_phase

BOARD = [(0.0, 0.6), (2.5, 1.1), (5.5, 0.7), (6.5, 0.6)]
MEDIUM = [(0.0, 0.1), (2.5, 0.3), (5.5, 0.2), (6.5, 0.1)]
"""While the board runs the medium takes 0.2 A of its 0.5 A; afterwards it works on for a second, and nothing else."""
SECONDS, VOLTS = 9.5, 5.0
READS_TOO_MUCH = 0.01
BOARD_J, MEDIUM_J, TAIL_J = VOLTS * (0.5 * 3 + 0.1), VOLTS * (0.2 * 3 + 0.1), VOLTS * 0.1
IDENTITY = MeterIdentity(
    kind="serial", place="", protocol_version=2, firmware_version="", board="atmega328p", serial_number="",
    reset_cause="", tick_hz=2_000_000, sensors=(SensorIdentity("ina219", 0x40), SensorIdentity("ina219", 0x41)),
    simulated=True,
)  # fmt: skip
SAME_CLOCK = Alignment(ClockMap("board", "meter", 0, 0, 1.0, 1e3, 1e-9, "sync-edges", 100.0, 30), ())
PHASES = {"idle-before": (0.2, 2.4), "run": (2.4, 5.6), "settle": (5.6, 6.8), "idle-after": (6.8, 9.0)}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Both sensors at the wire, in one record; the second one is calibrated, the first is not."""
    folder = tmp_path_factory.mktemp("medium")
    for name, rows in (("board", BOARD), ("ssd", MEDIUM)):
        write_profile(folder / f"{name}.csv", rows, VOLTS, SECONDS)
    options = [
        "--sensor",
        f"ina219@0x40={folder / 'board.csv'}",
        "--sensor",
        f"ina219@0x41={folder / 'ssd.csv'}",
    ]
    options += ["--profile", str(folder / "board.csv"), "--gain-error", str(READS_TOO_MUCH)]
    with rig_sim(folder, *options) as rig:
        options = f",label=bench-1,sensors=0+1,{SIMULATED_SENSOR}"
        meter = rig.meter(options)
        rig.capture(meter)
        return folder, meter, f"serial:{rig.port}{options}"


def known(recorded, calibrations):
    """What is known of the two sensors, with a calibration of the second alone."""
    _, meter, name = recorded
    bounds = replace(meter.further_error_bounds()[1], sensor_id="bench-1@0x41")
    true = TrueSensor(gain=1 / (1 + READS_TOO_MUCH))
    made = calibrate(points(true, TrueReference(bench_reference())), bench_reference(), bounds, "")
    sensor = CalibratedSensor(bounds.sensor_id, "INA219", bounds.current_max_a, 0.1)
    file = new_file(made, sensor, bench_reference(), simulated=True, date_utc=datetime.now(UTC), temperature_c=22.0)
    write_calibration(calibrations, file)
    return KnownSensors.of(meter, name, IDENTITY, Calibrations(calibrations, 22.0))


def aligned(folder, sensors, number):
    corrected = CorrectedTrace.of(read_trace(folder, number), sensors.bounds[number])
    return AlignedTrace(Cells.of(corrected.trace), corrected.sensor, SAME_CLOCK.board_to_meter)


@pytest.fixture(params=["board", "own"])
def result(request, recorded, tmp_path):
    """result.json's entries of one run, with the medium fed by the board, or by a supply of its own."""
    folder, _, _ = recorded
    sensors = known(recorded, tmp_path / "calibration")
    record = RunRecord.create(tmp_path / "run", {"db": "leveldb"}, simulated=True)
    medium = Medium("/mnt/ssd", sensor=1, supply=request.param)
    record.update(**sensors.entries())
    record.update(found={"storage_sensor": sensors.of_medium(medium)})
    sensed = aligned(folder, sensors, 1)
    start_ns = int(read_trace(folder).meter_ns[0])
    phases = [
        usual_phase(name, 1, start_ns + round(begin_s * 1e9), start_ns + round(end_s * 1e9), operations=1000)
        for name, (begin_s, end_s) in PHASES.items()
    ]
    board = AlignedTrace(Cells.of(read_trace(folder)), sensors.bounds[0], SAME_CLOCK.board_to_meter)
    nothing = OperationTable.empty(), 4, EVENTS.empty_table()
    entries, _ = build_result(AlignedRun(record, phases, board, SAME_CLOCK, *nothing, sensed))
    return request.param, entries, sensor_energies(phases, sensed)


@pytest.mark.rig
def test_the_medium_and_the_rest_are_stated_apart_each_with_its_interval(result):
    fed_by, entries, of_sensor = result
    medium, rest = (entries["by_component"][name] for name in ("storage", "rest"))
    assert medium == of_sensor["marginal_energy_j"]
    assert medium.covers(MEDIUM_J) and 0 < medium.u < 0.02 * MEDIUM_J
    rest_j = BOARD_J - MEDIUM_J if fed_by == "board" else BOARD_J
    assert rest.covers(rest_j) and medium.u < rest.u < 0.05 * rest_j
    assert rest.value == pytest.approx(rest_j, rel=2 * READS_TOO_MUCH)


@pytest.mark.rig
def test_what_the_medium_does_after_the_last_operation_is_in_its_sensors_figure(result):
    _, _, of_sensor = result
    assert of_sensor["write_back_energy_j"].value == pytest.approx(TAIL_J, abs=0.03 * MEDIUM_J)


@pytest.mark.rig
def test_each_sensor_is_corrected_by_its_own_calibration_alone(result):
    """Both read 1 % too much; only the medium's has been calibrated."""
    _, entries, of_sensor = result
    assert of_sensor["run_energy_j"].value == pytest.approx(VOLTS * (0.3 * 3.0 + 0.1 * 0.1 + 0.2 * 0.1), rel=3e-3)
    board_j = VOLTS * (1.1 * 3.0 + 0.6 * 0.1 + 0.7 * 0.1)
    assert entries["run_energy_j"].value == pytest.approx((1 + READS_TOO_MUCH) * board_j, rel=3e-3)


@pytest.mark.rig
def test_a_sensor_that_the_meter_does_not_record_is_refused_before_anything_is_done(recorded, tmp_path):
    sensors = known(recorded, tmp_path)
    assert sensors.of_medium(Medium("/mnt/sd")) is None
    with pytest.raises(BadInput, match=r"sensor 2, .* for the medium /mnt/ssd: .*sensors=0\+1\+2"):
        sensors.of_medium(Medium("/mnt/ssd", sensor=2))


def test_rig_toml_says_which_sensor_is_the_mediums_and_what_feeds_it(tmp_path):
    path = tmp_path / "rig.toml"
    text = '[meter]\nport = "serial:/dev/x,sensors=0+1"\n[device.rpi4.storage]\nssd = {{ path = "/mnt/ssd", {} }}\n'
    path.write_text(text.format('sensor = 1, supply = "own"'))
    medium = read_rig(path).device("rpi4").media["ssd"]
    assert (medium.sensor, medium.supply) == (1, "own")
    path.write_text(text.format("sensor = 1"))
    assert read_rig(path).device("rpi4").media["ssd"].supply == "board"
    for wrong in ('supply = "usb"', "sensor = -1", 'sensor = "1"'):
        path.write_text(text.format(wrong))
        with pytest.raises(BadInput, match=wrong.split()[0]):
            read_rig(path)
