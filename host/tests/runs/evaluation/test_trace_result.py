"""`record` and `import` answer: mean power, voltage and energy with their intervals, SIMULATED where no meter was."""

from __future__ import annotations

import json

import pytest
from opjoule.base.errors import FAULTY_EXIT
from opjoule.cli.import_trace import run_import
from opjoule.cli.record import run_record
from opjoule.cli.record_commands import ImportOptions, RecordOptions, ReportOptions
from opjoule.cli.report import run_report
from opjoule.results.answer import open_answer
from opjoule.runs.evaluation.trace_result import STATED_VOLTAGE, conclude_trace
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.result import read_result
from opjoule.runs.record.run_record import RunRecord
from recorded_traces import SLOW, recorded
from software_meter import SoftwareMeter


def test_energy_power_and_voltage_are_given_with_their_interval(tmp_path):
    record = recorded(tmp_path / "bench", exchanges=False)
    assert conclude_trace(record)
    result = read_result(record.directory).numbers
    assert result["energy_j"]["value"] == pytest.approx(25.0, rel=1e-3)
    assert result["energy_j"]["u"] > 0.01 * 25.0  # the shunt's 1 %, the chip's gain, the resonator
    assert result["power_w"]["value"] == pytest.approx(2.5, rel=1e-3) and result["power_w"]["unit"] == "W"
    assert result["voltage_v"]["value"] == pytest.approx(5.0) and 0 < result["voltage_v"]["u"] < 0.05
    assert result["duration_s"]["value"] == pytest.approx(10.0, rel=1e-3)
    assert result["timebase"]["clock"] == "meter"


def test_the_seconds_are_those_of_the_host_where_round_trips_tie_the_meter_to_it(tmp_path):
    record = recorded(tmp_path / "bench", exchanges=True)
    assert conclude_trace(record)
    result = read_result(record.directory).numbers
    assert result["timebase"]["clock"] == "host"
    assert result["energy_j"]["value"] == pytest.approx(25.0 / SLOW, rel=1e-4)
    assert result["duration_s"]["value"] == pytest.approx(10.0 / SLOW, rel=1e-4)
    assert result["duration_s"]["u"] < 0.01


def test_round_trips_with_a_clock_that_ran_backwards_give_no_result_but_a_reason(tmp_path):
    record = recorded(tmp_path / "bench", exchanges=True, rate=-1.0)
    assert not conclude_trace(record)
    assert "was it restarted?" in " ".join(fault.text for fault in record.faults)


@pytest.mark.parametrize("samples", [0, 1])
def test_of_fewer_than_two_samples_every_number_is_missing_with_its_reason(tmp_path, samples):
    record = recorded(tmp_path / "bench", exchanges=False, samples=samples)
    assert conclude_trace(record)
    result = read_result(record.directory).numbers
    assert result["energy_j"]["value"] is None and "two samples" in result["energy_j"]["reason"]
    assert result["lost_samples"]["value"] == 0


def test_a_killed_recording_is_analysed_by_report(tmp_path, capsys):
    record = recorded(tmp_path / "bench", exchanges=True)
    assert run_report(ReportOptions(record=record.directory)) == 0
    said = capsys.readouterr().out
    assert "mean power" in said and "PARTIAL" in said
    assert RunRecord.open(record.directory).is_finished and RunRecord.open(record.directory).verify() == []


def test_recording_a_program_instead_of_a_meter_says_simulated(tmp_path, capsys):
    with SoftwareMeter(frames=100) as device:
        options = RecordOptions(
            storage_meter=None,
            out=tmp_path / "bench",
            meter=f"serial:{device.path}",
            seconds=0.1,
            json=False,
            live=False,
            room_temperature=None,
        )
        run_record(options)
    assert "SIMULATED" in capsys.readouterr().out
    assert RunRecord.open(options.out).simulated
    assert json.loads((options.out / "run.json").read_text())["found"]["meter"]["simulated"] is True


def recorded_from(device, out, *, as_json=False):
    """Exit status of `record` from a software meter."""
    meter = f"serial:{device.path},mode=pairs"
    options = RecordOptions(
        out=out,
        meter=meter,
        storage_meter=None,
        seconds=0.1,
        json=as_json,
        live=False,
        room_temperature=None,
    )
    return run_record(options)


def test_a_recording_with_samples_beyond_the_range_ends_with_status_6_and_advice_on_the_range(tmp_path, capsys):
    with SoftwareMeter(frames=100) as device:
        assert recorded_from(device, tmp_path / "sound") == 0
    with SoftwareMeter(frames=100) as device:
        device.source.full_scale = True
        assert recorded_from(device, tmp_path / "current") == FAULTY_EXIT
    assert "smaller shunt" in capsys.readouterr().out
    with SoftwareMeter(frames=100) as device:
        device.source.bus = 8000  # 32 V, the end of an INA219's range
        assert recorded_from(device, tmp_path / "voltage") == FAULTY_EXIT
    said = capsys.readouterr().out
    assert "lower supply" in said and "shunt" not in said.split("energies over them", 1)[1].split("\n")[0]


def test_a_recording_as_json_lists_the_faults_of_its_record(tmp_path, capsys):
    with SoftwareMeter(frames=100) as device:
        device.source.full_scale = True
        assert recorded_from(device, tmp_path / "current", as_json=True) == FAULTY_EXIT
    result = json.loads(capsys.readouterr().out)
    assert result["notices"] == plain(list(RunRecord.open(tmp_path / "current").run.notices))
    assert "smaller shunt" in result["notices"][0]["remedy"] and result["meter_faults"] == []


def sentence(options):
    """The answer of an imported trace, with ordinary spaces."""
    return open_answer(options.out).sentence.replace("\N{NO-BREAK SPACE}", " ")


CSV = "time (s),current (mA)\n" + "".join(f"{number / 1000},{500}\n" for number in range(2000))


@pytest.mark.parametrize("sensor", [None, "ina219"])
def test_an_imported_trace_states_no_interval_that_it_cannot_have(tmp_path, capsys, sensor):
    file = tmp_path / "trace.csv"
    file.write_text(CSV)
    options = ImportOptions(file=file, out=tmp_path / "bench", columns=[], voltage=5.0, sensor=sensor)
    assert run_import(options) == 0
    result, said = read_result(options.out).numbers, capsys.readouterr().out
    assert result["energy_j"]["value"] == pytest.approx(5.0, rel=1e-3) and result["energy_j"]["u"] is None
    assert result["energy_j"]["reason"] == STATED_VOLTAGE
    assert "mean power" in said and "energy" in said and "--sensor" not in said
    assert "2.500 W" in sentence(options) and "not stated" in sentence(options)


def test_an_imported_trace_at_the_end_of_the_range_is_a_lower_bound(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("time (s),current (A),voltage (V)\n" + "".join(f"{n / 1000},{4},5\n" for n in range(2000)))
    options = ImportOptions(file=file, out=tmp_path / "bench", columns=[], sensor="ina219")
    run_import(options)
    assert "at least 20.00 W" in sentence(options) and "not stated" in sentence(options)
