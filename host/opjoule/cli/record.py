"""`measure.py record`: a meter's trace without a board."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opjoule.base.errors import FAULTY_EXIT, INTERRUPTED, Interrupted, MeterFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.scripts import CALIBRATIONS, script_name
from opjoule.cli.record_commands import RecordOptions
from opjoule.cli.view import live_view
from opjoule.meters.capture import CaptureSummary
from opjoule.meters.registry import open_meters
from opjoule.pages.report.terminal import print_trace
from opjoule.results.answer import open_answer
from opjoule.runs.evaluation.trace_result import conclude_trace
from opjoule.runs.measuring.open_meter import Calibrations, OpenMeter, Recording, opened_meter
from opjoule.runs.measuring.progress import PhaseProgress
from opjoule.runs.record.directory import check_out, held
from opjoule.runs.record.json_file import plain
from opjoule.runs.record.run_record import RunRecord

_POLL_S = 0.1


def run_record(options: RecordOptions) -> int:
    """Records until the time is over, Ctrl-C is pressed, or a simulated meter has played its profile.

    Any other end (a reset, silence, a port that closes), or less time than asked for, is a fault. The record is then
    partial, and the exit status is that of a meter fault or of an interruption. A complete record with a fault gives
    status 6, as a measurement does.

    Raises: BadInput: the directory already contains a record. MeterFault: the meter does not do what it should.
    """
    check_out(options.out)
    calibrations = Calibrations(CALIBRATIONS, options.room_temperature)
    meter = open_meters(options.meter, options.storage_meter)
    asked = {
        "meter": options.meter,
        "seconds": options.seconds,
        "room_temperature_c": options.room_temperature,
    }
    with (
        opened_meter(meter, options.meter, calibrations) as opened,
        trace_record(opened, options.out, asked) as record,
    ):
        for notice in (*opened.identity.notices, *opened.sensors.notices):
            print(f"{script_name()}: warning: {notice.text}", file=sys.stderr)
        with PhaseProgress(quiet=options.json) as progress, live_view(options.live) as show:
            show(options.out)
            try:
                recording = opened.recording(options.out, tell_fault=record.add_notices)
                captured, ended, interrupted = _record(recording, options.seconds, progress)
            except MeterFault as fault:  # raised while the meter was being started, so there is no sample
                record.add_notices(Notice(NoticeKind.METER, str(fault)))
                record.finish("failed")
                raise
    status = _finish(record, captured, ended, options)
    return Interrupted.exit_code if status == MeterFault.exit_code and interrupted else status


def _record(
    recording: Recording, seconds: float | None, progress: PhaseProgress
) -> tuple[CaptureSummary, Notice | None, bool]:
    """Captures `seconds` of the meter's clock.

    Returns: the summary, why it ended early (None if it did not), and whether a signal ended it.
    """
    capture = recording.capture
    progress.watch(capture.history)
    progress.phase("record", seconds)
    interrupted = ""
    with recording:
        try:
            while capture.trace_s < (seconds or math.inf) and not capture.wait(_POLL_S):
                progress.advance_to(capture.trace_s)
        except KeyboardInterrupt as error:
            interrupted = str(error) or INTERRUPTED
    captured = capture.summary
    if seconds is None or capture.trace_s >= seconds:
        broken = None if seconds is not None or not captured.ended else Notice(NoticeKind.METER, captured.ended)
        return captured, broken, False
    why = captured.ended or interrupted or "the simulator's profile has ended"
    kind = NoticeKind.METER if captured.ended else NoticeKind.INTERRUPTED if interrupted else NoticeKind.FAULT
    ended = Notice(kind, f"{why}; {capture.trace_s:.3g} of the {seconds:g} s asked for are recorded")
    return captured, ended, kind is NoticeKind.INTERRUPTED


def _finish(record: RunRecord, captured: CaptureSummary, ended: Notice | None, options: RecordOptions) -> int:
    if ended:
        record.add_notices(ended)
    whole = conclude_capture(record, captured) and not ended
    record.finish("failed" if record.withheld else "complete" if whole else "partial" if captured.samples else "failed")
    lost = captured.losses
    if options.json:
        path = record.path("result.json")
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        outcome = {
            "record": str(record.directory),
            "status": record.status,
            **captured.to_json(),
            "meter_faults": captured.faults,
            "notices": record.run.notices,
            "result": result,
        }
        sys.stdout.write(json.dumps(plain(outcome)) + "\n")
    else:
        print(
            f"{captured.samples} samples in {record.directory} ({record.status}); "
            f"{lost.lost_samples} lost, the charge of {lost.recovered_samples} of them is known"
        )
        for fault in record.faults:
            print(f"{'ended' if fault == ended else 'fault'}: {fault.text}")
        if captured.samples:
            print_trace(open_answer(record.directory))
    if captured.samples == 0:
        raise MeterFault(f"{options.meter} sent no sample: check its sensor's wiring, then host/measure.py doctor")
    if whole:
        return FAULTY_EXIT if record.faults else 0
    return MeterFault.exit_code


@contextmanager
def trace_record(opened: OpenMeter, directory: Path, asked: Mapping[str, Any]) -> Iterator[RunRecord]:
    """Creates a record for an open meter, and holds it until the end of the block."""
    record = RunRecord.create(directory, asked, simulated=opened.identity.simulated)
    record.update(found={"meter": opened.identity})
    record.add_notices(*opened.identity.notices, *opened.sensors.notices)
    record.update(**opened.sensors.entries())
    with held(record.directory):
        yield record


def conclude_capture(record: RunRecord, captured: CaptureSummary) -> bool:
    """Writes the result of what was captured, and its faults; whether there is a result."""
    concluded = conclude_trace(record)
    record.add_notices(*captured.notices())
    record.update(capture=captured.to_json())
    return concluded and captured.samples > 0
