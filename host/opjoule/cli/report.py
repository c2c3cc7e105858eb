"""`measure.py report`: summary and page of an existing record."""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opjoule.base.errors import RecordFault, of_system
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.resources import analysis_resources
from opjoule.base.scripts import script_name
from opjoule.cli.record_commands import ReportOptions
from opjoule.runs.record.directory import has_index, held
from opjoule.runs.record.run_record import RunRecord, reading

if TYPE_CHECKING:
    from opjoule.pages.report.timeline import Timeline

_ANALYSIS: Final = ("opjoule.runs.evaluation.collection", "opjoule.pages.report.html", "opjoule.pages.report.terminal")
"""Modules that take longest to load."""
_AS_RECORDED: Final = "these figures come from what it had recorded"


def run_report(options: ReportOptions) -> int:
    """Prints the summary of an existing record and writes its report.html; a killed run is analysed first.

    Raises: RecordFault: no readable record. BadInput: its measurement is still running.
    """
    if has_index(options.record):
        return _report_of_several(options.record)
    with reading(options.record), analysis_resources():
        record = _analyse(options.record)
        from opjoule.pages.report.terminal import print_summary  # noqa: PLC0415  # loaded in parallel with the analysis

        print_summary(record)
    return altered_status([record])


def altered_status(records: Sequence[RunRecord]) -> int:
    """Exit status of a command that shows records: 4, as for `verify`, if a file was changed since its run; else 0."""
    return RecordFault.exit_code if any(record.altered for record in records) else 0


def _report_of_several(directory: Path) -> int:
    from opjoule.pages.comparison import write_campaign_page  # noqa: PLC0415
    from opjoule.results.comparison.conclusion import print_campaign  # noqa: PLC0415  # a single record needs none of these
    from opjoule.results.comparison.index import read_index  # noqa: PLC0415

    records = []
    for run in read_index(directory)[0]:
        place = directory / run.folder
        if (place / "run.json").exists():
            with reading(place):
                records.append(_analyse(place))
    with _shown_anyway():
        write_campaign_page(directory)
    print_campaign(directory)
    return altered_status(records)


def _analyse(directory: Path) -> RunRecord:
    record, timeline = RunRecord.open(directory), None
    if record.is_finished:
        with _loading():
            record.check_beside()
    elif record.run.found.cores is not None:
        timeline = _end_measurement(record)
    else:
        _end_trace(record)
    from opjoule.pages.report.html import write_report  # noqa: PLC0415  # loaded while the record's files were checked

    with _shown_anyway():
        write_report(record, timeline)
    return record


@contextmanager
def _shown_anyway() -> Iterator[None]:
    """Says in one line that a record may not be written; its figures are printed all the same."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        print(f"{script_name()}: report.html is not rewritten: {of_system(error)}", file=sys.stderr)


@contextmanager
def _loading() -> Iterator[None]:
    """Loads the modules of the analysis in a thread while the block checks files, which leaves Python free."""
    with ThreadPoolExecutor(1) as beside:
        beside.submit(lambda: [importlib.import_module(name) for name in _ANALYSIS])
        yield


def _end_measurement(record: RunRecord) -> Timeline | None:
    """Analyses what a killed measurement had recorded."""
    with held(record.directory):
        with _loading():
            record.add_notices(Notice(NoticeKind.PARTIAL, f"the measurement ended early; {_AS_RECORDED}"))
            record.close_raw()
        from opjoule.pages.report.timeline import packed_timeline  # noqa: PLC0415
        from opjoule.runs.evaluation.collection import collect  # noqa: PLC0415
        from opjoule.runs.evaluation.evidence import Evidence  # noqa: PLC0415

        return collect(record, Evidence.of(record, ended_early=True), packed_timeline)


def _end_trace(record: RunRecord) -> None:
    """Analyses what a killed recording without a board had recorded; other unfinished records are left as they are."""
    from opjoule.runs.evaluation.trace_result import conclude_trace  # noqa: PLC0415
    from opjoule.runs.evaluation.wording import TRACE, wording_of  # noqa: PLC0415

    if wording_of(record.run) is not TRACE:
        return
    with held(record.directory):
        record.add_notices(Notice(NoticeKind.PARTIAL, f"the recording ended early; {_AS_RECORDED}"))
        record.close_raw()
        conclude_trace(record)
        record.finish("partial")
