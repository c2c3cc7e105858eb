"""`measure.py import`: makes a run record from a trace that another program recorded."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opjoule.base.errors import BadInput, DataFault
from opjoule.base.files import file_sha256
from opjoule.base.notices import Notice, NoticeKind
from opjoule.cli.record_commands import ImportOptions
from opjoule.energy.trace.imported.trace_file import ImportedTrace, read_trace_file
from opjoule.energy.trace.journal import TraceJournal
from opjoule.energy.trace.power_trace import BoolArray, Gap
from opjoule.meters.registry import import_sensors, usual_sensors
from opjoule.pages.report.terminal import print_trace
from opjoule.results.answer import open_answer
from opjoule.runs.evaluation.trace_result import conclude_trace
from opjoule.runs.record.directory import check_out
from opjoule.runs.record.run_record import RunRecord


def run_import(options: ImportOptions) -> int:
    """Reads the file, writes the record and prints which column gave what.

    Raises: BadInput: the file cannot be read without guessing, or the directory already contains a record.
    """
    check_out(options.out)
    sensors = import_sensors()
    if options.sensor is not None and options.sensor not in sensors:
        raise BadInput(f"--sensor {options.sensor} is unknown: use one of {', '.join(sensors)}")
    trace = read_trace_file(options.file, _mapping(options.columns), options.voltage, options.rate)
    sensor = options.sensor or usual_sensors().get(trace.kind)
    if sensor is None and not trace.voltage_stated:
        trace.notes.append("error bounds unknown: name the meter with --sensor to get an uncertainty")
    record = RunRecord.create(options.out, {"import": str(options.file), "columns": options.columns}, simulated=False)
    source = {
        "file": str(options.file),
        "sha256": file_sha256(options.file),
        "format": trace.kind,
        "columns": trace.columns,
        "sensor": sensor,
        "voltage_stated": trace.voltage_stated,
        "notes": trace.notes,
    }
    record.update(found={"imported": source})
    clipped = np.zeros(trace.current_a.shape, np.bool_)
    if sensor:
        model = sensors[sensor]()
        record.update(sensor=model)
        clipped = np.asarray(np.abs(trace.current_a) >= model.current_max_a, np.bool_)
    if clipped.any():
        line = (
            f"{np.count_nonzero(clipped)} rows at or beyond the {model.current_max_a:g} A of {sensor}: energies over "
            "them are lower bounds"
        )
        record.add_notices(Notice(NoticeKind.CLIPPED, line))
    samples, lost = _write(trace, clipped, options.out)
    record.finish("complete" if conclude_trace(record) else "partial")
    sources = ", ".join(f"{role} from {name}" for role, name in trace.columns.items())
    print(f"{samples} samples in {options.out} ({trace.kind}: {sources}); {lost} missing")
    for note in trace.notes:
        print(f"note: {note}")
    for fault in record.faults:
        print(f"fault: {fault.text}")
    print_trace(open_answer(options.out))
    return 0 if record.status == "complete" else DataFault.exit_code


def _write(trace: ImportedTrace, clipped: BoolArray, directory: Path) -> tuple[int, int]:
    journal = TraceJournal(directory)
    for part in trace.parts():
        if isinstance(part, Gap):
            journal.append_gap(part)
        else:
            columns = trace.meter_ns[part], trace.current_a[part], trace.voltage_v[part]
            journal.append_samples(*columns, clipped=clipped[part])
    journal.close()
    return journal.samples, journal.lost_samples


def _mapping(entries: Sequence[str]) -> dict[str, str]:
    mapping = {}
    for entry in entries:
        role, equals, name = entry.partition("=")
        if not equals or not name:
            raise BadInput(f"--columns {entry} is not ROLE=NAME or ROLE=NAME:UNIT; for example current=I_board:mA")
        mapping[role.strip()] = name.strip()
    return mapping
