"""`host/runs.py`: notes, shows, checks, exports and deletes records."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from opjoule.base.errors import BadInput, RecordFault
from opjoule.base.scripts import RUNS
from opjoule.bench.simulation.truth_line import held_line
from opjoule.cli.failures import one_line
from opjoule.cli.record_commands import VerifyOptions
from opjoule.cli.report import altered_status
from opjoule.cli.runs.conclusions import write_conclusions
from opjoule.cli.runs.options import (
    ExportOptions,
    FiguresOptions,
    NoteOptions,
    PruneOptions,
    ShowOptions,
    VerifyPlacesOptions,
)
from opjoule.energy.trace.journal import read_edges
from opjoule.pages.report.terminal import print_summary
from opjoule.results.comparison.compared_run import allowed_groups
from opjoule.results.comparison.index import forget_run, is_one_of_several
from opjoule.results.exports import formats, writer
from opjoule.results.recorded import table_of
from opjoule.results.run import open_run
from opjoule.results.run_list import ListedRun, find_runs
from opjoule.runs.record.directory import held, is_held, read_notes, write_notes
from opjoule.runs.record.result import read_result
from opjoule.runs.record.run_record import RunRecord, reading
from opjoule.runs.studies.folder import find_study

PERFETTO: Final = "perfetto"
"""The format whose samples and operations `--most` limits."""
CUT_OFF: Final = "partial"
"""Status of a run that was killed or interrupted; its campaign has measured it again, or will."""


def run_note(options: NoteOptions) -> int:
    """Writes or prints the note and tags of a record."""
    notes = read_notes(options.record)
    if options.text is not None:
        notes = notes.saying(options.text)
    notes = notes.tagged(options.tag, options.untag)
    if options.text is not None or options.tag or options.untag:
        write_notes(options.record, notes)
    elif not (options.record / "run.json").is_file():
        raise RecordFault(f"{options.record} is not a run record: it has no run.json")
    tags = f"tags: {', '.join(notes.tags)}" if notes.tags else "no tags"
    _tell([f"{options.record}: {notes.text or 'no note'} ({tags})"])
    return 0


def run_show(options: ShowOptions) -> int:
    """Prints a record's summary; 4 if one of its files was changed since the run."""
    with reading(options.record):
        if options.json:
            run = open_run(options.record)
            if not run.result:
                raise RecordFault(f"{options.record}: no result: {run.answer.problem}")
            print(json.dumps(run.answer.to_json(), indent=2))
        else:
            print_summary(options.record)
        record = RunRecord.open(options.record)
        if record.simulated and (line := held_line(options.record)):
            print(line, file=sys.stderr if options.json else sys.stdout)
        altered = record.altered
        if options.json:
            print(*altered, sep="\n", end="\n" if altered else "", file=sys.stderr)
        return altered_status([record])


def run_verify(options: VerifyOptions | VerifyPlacesOptions) -> int:
    """Prints which files of each record were changed, are missing or cannot be read; 4 if there is one."""
    records = options.records if isinstance(options, VerifyOptions) else [run.path for run in find_runs(options.places)]
    if not records:
        raise BadInput("there is no record to verify: name a record, or a folder of records such as runs")
    outcomes = [_verified(directory) for directory in records]
    if options.json:
        sys.stdout.write(json.dumps(outcomes, indent=2) + "\n")
    else:
        for outcome in outcomes:
            print(*(outcome["problems"] or [f"{outcome['record']}: {outcome['said']}"]), sep="\n")
    return RecordFault.exit_code if any(outcome["problems"] for outcome in outcomes) else 0


def _verified(directory: Path) -> dict[str, Any]:
    try:
        with reading(directory):
            record = RunRecord.open(directory)
            problems = record.verify() or _unreadable(record)
    except RecordFault as fault:
        return {"record": str(directory), "status": None, "said": "", "problems": [str(fault)]}
    said = "ended early; its sealed parts are unchanged"
    if record.is_finished:
        said = f"{len(record.run.checksums or {})} files are as the run left them ({record.status})"
    return {"record": str(directory), "status": record.status, "said": said, "problems": problems}


def _unreadable(record: RunRecord) -> list[str]:
    """One line for each file of a record that cannot be read although it is unchanged since the run."""
    run, said = open_run(record.directory), []
    readers: dict[str, Callable[[], object]] = {
        "power.parquet": lambda: run.power,
        "edges.parquet": lambda: read_edges(record.directory),
        "operations.parquet": lambda: run.operations,
        "events.parquet": lambda: run.events,
        "system.parquet": lambda: run.system,
        "attribution.parquet": lambda: table_of(record, "attribution"),
        "result.json": lambda: read_result(record.directory),
    }
    for name, read in readers.items():
        try:
            if record.path(name).exists():
                read()
        except RecordFault as fault:
            said.append(str(fault))
    return said


def run_export(options: ExportOptions) -> int:
    """Writes a record in other formats; 4 if one of its files was changed since the run."""
    chosen = {name: path for name in formats() if (path := options.values[name])}
    if not chosen:
        raise BadInput(f"no export format is given: give {' or '.join(f'--{name} PATH' for name in formats())}")
    limit = {"most": None if options.all else options.most} if options.all or options.most else {}
    with reading(options.record):
        run = open_run(options.record)
        for name, path in chosen.items():
            _tell(writer(name)(run, path, **(limit if name == PERFETTO else {})))
        return altered_status([run.answer.record])


def run_figures(options: FiguresOptions) -> int:
    """Draws runs for print."""
    from opjoule.pages.plots.figures import write_figures  # noqa: PLC0415  # matplotlib is installed only for this

    places = [str(place) for place in options.places]
    study = find_study(options.study) if options.study else None
    _tell(write_figures(places, options.out, allowed_groups(options.although), study))
    if study and study.conclusions:
        _tell([str(write_conclusions(options.out, places, study))])
    return 0


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        print(one_line(line))


def run_prune(options: PruneOptions) -> int:
    """Lists the records that match the rules, or deletes them."""
    if not (options.status or options.older_than or options.simulated):
        raise BadInput("no rule says what to delete: give --status, --older-than DAYS, --simulated or several of them")
    before = datetime.now(UTC) - timedelta(days=options.older_than) if options.older_than else None
    picked = [run for run in find_runs(options.places) if _picked(run, options, before)]
    if not picked:
        print("no record matches; nothing was deleted")
    freed_bytes = 0
    for run in picked:
        size_bytes = run.size_bytes
        if why := _kept(run.path, run.status) or (options.yes and _delete(run.path)):
            _tell([f"kept: {run.path}: {why}"])
            continue
        freed_bytes += size_bytes
        words = "deleted" if options.yes else "would delete"
        _tell([f"{words}: {run.path} ({run.status}, {size_bytes / 1e6:.1f} MB)"])
    done = "freed" if options.yes else "would be freed; nothing was deleted: give --yes to delete them"
    if picked:
        print(f"{freed_bytes / 1e6:.1f} MB {done}")
    return 0


def _picked(run: ListedRun, options: PruneOptions, before: datetime | None) -> bool:
    """Whether a record matches all given rules and no pattern keeps it; a record without a date is not old."""
    began = run.started
    old = before is None or (began is not None and began < before)
    ended = not options.status or run.status in options.status
    kept = any(fnmatch(str(run.path), pattern) or fnmatch(run.path.name, pattern) for pattern in options.keep)
    return old and ended and (run.simulated or not options.simulated) and not kept


def _kept(path: Path, status: str) -> str:
    """Why a record must never be deleted; empty if it may be."""
    place = path.resolve()
    if place == RUNS / "example":
        return "the example belongs to the repository"
    if is_one_of_several(place) and status != CUT_OFF:
        return f"it is one of the runs of {place.parent}, which needs it"
    return "its measurement still runs" if is_held(path) or is_held(path.parent) else ""


def _delete(path: Path) -> str:
    """Deletes a record, run.json first, so that an interruption leaves no record. Returns why not, or empty."""
    try:
        with held(path), held(path.parent):
            (path / "run.json").unlink()
            shutil.rmtree(path)
            forget_run(path)
    except BadInput:
        return "its measurement still runs"
    return ""
