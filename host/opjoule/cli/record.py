"""`measure.py record`: a meter's trace on its own, no board involved."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict

from opjoule.errors import BadInput, MeterFault
from opjoule.measurement.progress import PhaseProgress
from opjoule.meters import open_meter
from opjoule.meters.capture import Capture, CaptureSummary
from opjoule.meters.interface import sensor_entries
from opjoule.record.run_record import RunRecord
from opjoule.trace.journal import TraceJournal, to_parquet

_POLL_S = 0.1


def run_record(options: argparse.Namespace) -> int:
    """Records until the time is up, the meter ends or Ctrl-C; without --seconds the last two are no fault.

    Raises: BadInput: the directory holds a record already. MeterFault: the meter does not do as asked.
    """
    if (options.out / "run.json").exists():
        raise BadInput(f"{options.out} already holds a run record: choose another --out")
    meter = open_meter(options.meter)
    try:
        identity = meter.open()
        meter.configure()
        asked = {"meter": options.meter, "seconds": options.seconds}
        record = RunRecord.create(options.out, asked, simulated=False)
        record.update(found={"meter": asdict(identity)}, **sensor_entries(meter))
        journal = TraceJournal(options.out)
        with PhaseProgress(quiet=options.json) as progress:
            captured, ended = _record(Capture(meter, journal), options.seconds, progress)
        journal.close()
    finally:
        meter.close()
    return _finish(record, captured, ended, options)


def _record(capture: Capture, seconds: float | None, progress: PhaseProgress) -> tuple[CaptureSummary, str]:
    """Captures `seconds` of the meter's clock; returns what came and why it ended early, empty if it did not.

    A meter whose port closes has ended, as a file does: that is early only if a time was asked for and not reached.
    """
    progress.phase("record", seconds)
    capture.start()
    ended = ""
    try:
        while capture.trace_s < (seconds or math.inf) and not capture.wait(_POLL_S):
            progress.advance_to(capture.trace_s)
    except KeyboardInterrupt:
        ended = "interrupted by the user (Ctrl-C)"
    captured = capture.stop()
    reached = seconds is not None and capture.trace_s >= seconds
    return captured, "" if reached else ended or captured.ended or ""


def _finish(record: RunRecord, captured: CaptureSummary, ended: str, options: argparse.Namespace) -> int:
    to_parquet(record.directory)
    if ended:
        record.add_fault(ended)
    for line in captured.fault_lines():
        record.add_fault(line)
    record.update(capture=captured.to_json())
    whole = captured.samples > 0 and (not ended or options.seconds is None)
    record.finish("complete" if whole else "partial")
    lost = captured.losses
    if options.json:
        outcome = {"record": str(record.directory), "status": record.status, **captured.to_json()}
        sys.stdout.write(json.dumps(outcome) + "\n")
    else:
        print(
            f"{captured.samples} samples in {record.directory} ({record.status}); "
            f"{lost.lost_samples} lost, the charge of {lost.recovered_samples} of them is known"
        )
        if ended:
            print(f"ended: {ended}")
    if captured.samples == 0:
        raise MeterFault(
            f"{options.meter} sent no sample: check its sensor's wiring, then host/measure.py doctor"
        )
    return 0 if whole else MeterFault.exit_code
