"""A sensor whose VIN+ and VIN- are exchanged: a measurement, a recording and an import say so."""

import json

import numpy as np
from opjoule.cli import import_trace
from opjoule.cli.record_commands import ImportOptions
from opjoule.energy.trace.journal import TraceJournal
from opjoule.pages.report.terminal import print_summary
from raw_record import finished_record

ADVICE = "it flows backwards: exchange the wires at VIN+ and VIN"


def test_a_measurement_with_a_swapped_sensor_withholds_its_energies_with_the_advice(tmp_path, monkeypatch, capsys):
    written = TraceJournal.append_samples

    def turned(self, meter_ns, current_a, *columns, **more):
        written(self, meter_ns, -np.asarray(current_a), *columns, **more)

    monkeypatch.setattr(TraceJournal, "append_samples", turned)
    record = finished_record(tmp_path / "record")
    assert any(ADVICE in fault.text for fault in record.faults)
    result = json.loads((record.directory / "result.json").read_text())
    assert ADVICE in result["energy_j"]["reason"]
    assert result["energy_j"]["value"] is None
    print_summary(record.directory)
    assert ADVICE in " ".join(capsys.readouterr().out.split())


def test_an_import_with_a_negative_mean_current_prints_the_advice(tmp_path, capsys):
    path = tmp_path / "trace.csv"
    path.write_text("time_s,current_A,voltage_V\n" + "".join(f"{n / 10},-0.6,5\n" for n in range(20)))
    assert import_trace.run_import(ImportOptions(file=path, out=tmp_path / "record")) == 0
    said = capsys.readouterr().out
    assert "-0.600 A: " in said and ADVICE in said
