"""The record of a meter alone, without a board."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opjoule.meters.capture import CaptureSummary
from opjoule.runs.evaluation.trace_result import conclude_trace
from opjoule.runs.measuring.open_meter import OpenMeter
from opjoule.runs.record.directory import held
from opjoule.runs.record.run_record import RunRecord


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
