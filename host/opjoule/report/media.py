"""Several media side by side: one folder with a record for each run, one table and one page over all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from rich.console import Console
from rich.table import Table

from opjoule.energy.repeats import repeat_standard_u
from opjoule.errors import OpJouleError, RecordFault
from opjoule.files import write_whole
from opjoule.record.json_file import read_json, write_json
from opjoule.record.result import read_result
from opjoule.record.result_tables import YCSB
from opjoule.record.run_record import RunRecord
from opjoule.report.markup import Element, element, row, table, text_of
from opjoule.report.quantities import NONE
from opjoule.report.rounding import rounded
from opjoule.units import COVERAGE_FACTOR

INDEX = "media.json"
VERSION = 2
COMPARED = YCSB.shown("compared")
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class MediumRun:
    """One run of one medium, in the order of measuring."""

    block: int
    medium: str
    folder: str
    """Its record's directory below the common one."""
    why: str = ""
    """Why there is no result; empty where there is one, or where it has not been measured yet."""
    status: str = "not measured"
    result: Mapping[str, Any] | None = None


def write_index(directory: Path, runs: Sequence[MediumRun], *, simulated: bool) -> None:
    """Writes media.json: the runs, and each medium's means as far as there are results."""
    results = {medium: [each.result for each in runs if each.medium == medium] for medium in media_of(runs)}
    entries = [
        {key: getattr(each, key) for key in ("block", "medium", "folder", "status", "why")} for each in runs
    ]
    means = {medium: compared([each for each in found if each]) for medium, found in results.items()}
    directory.mkdir(parents=True, exist_ok=True)
    schema = {"name": "media", "version": VERSION}
    write_json(directory / INDEX, {"schema": schema, "simulated": simulated, "runs": entries, "media": means})


def read_index(directory: Path) -> tuple[list[MediumRun], bool]:
    """The runs that media.json names, each with what its record says now; whether they are simulated.

    Raises: RecordFault: media.json is missing or damaged, or of a newer version.
    """
    path = directory / INDEX
    try:
        index = read_json(path)
        version, simulated = int(index["schema"]["version"]), bool(index["simulated"])
        if version > VERSION:
            raise RecordFault(
                f"{path}: version {version}, this program reads up to {VERSION}: update OpJoule"
            )
        entries = index["runs"] if version > 1 else _of_version_1(index["order"])
        named = [
            MediumRun(int(each["block"]), str(each["medium"]), str(each["folder"]), str(each.get("why", "")))
            for each in entries
        ]
    except FileNotFoundError:
        raise RecordFault(f"{path} is not there") from None
    except (KeyError, TypeError, ValueError) as fault:
        raise RecordFault(f"{path} is damaged: {type(fault).__name__}: {fault}") from None
    return [look(directory, each) for each in named], simulated


def _of_version_1(order: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "folder": f"{number:02}-{each['medium']}"} for number, each in enumerate(order, 1)]


def look(directory: Path, run: MediumRun) -> MediumRun:
    """The run as its record stands now: status and result, or why there is none."""
    place = directory / run.folder
    if not (place / "run.json").exists():
        return MediumRun(run.block, run.medium, run.folder, run.why or "not measured")
    try:
        record = RunRecord.open(place)
        faults, status = "; ".join(record.faults), record.status
    except OpJouleError as error:
        return MediumRun(run.block, run.medium, run.folder, str(error), "unreadable")
    try:
        return MediumRun(run.block, run.medium, run.folder, "", status, read_result(place))
    except OpJouleError as error:
        return MediumRun(run.block, run.medium, run.folder, run.why or faults or str(error), status)


def media_of(runs: Sequence[MediumRun]) -> list[str]:
    """Every medium once, sorted."""
    return sorted({each.medium for each in runs})


def compared(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean of every quantity of COMPARED over one medium's runs that have it, with `runs` saying how many.

    The expanded uncertainty joins the largest of the runs' own (the sensor's errors are the same in all of them) with
    that of the mean of repeats; null, with a reason, where no run has the number, or one states no uncertainty.
    """
    return {each.key: _mean([result.get(each.key, {}) for result in results]) for each in COMPARED}


def _mean(numbers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    units = [number["unit"] for number in numbers if number.get("unit")]
    entry: dict[str, Any] = {"value": None, "u": None, "unit": units[0] if units else "1"}
    known = [number for number in numbers if number.get("value") is not None]
    if not known:
        reasons = [number["reason"] for number in numbers if number.get("reason")]
        return {**entry, "reason": reasons[0] if reasons else "no run has it"}
    values = [float(number["value"]) for number in known]
    entry |= {"value": statistics.fmean(values), "runs": len(values)}
    if unstated := [number for number in known if number.get("u") is None]:
        return {**entry, "reason": unstated[0].get("reason", "uncertainty not stated in a run")}
    spread = COVERAGE_FACTOR * repeat_standard_u(values) if len(values) > 1 else 0.0
    entry["u"] = math.hypot(max(float(number["u"]) for number in known), spread)
    return entry


def cells(runs: Sequence[MediumRun]) -> list[tuple[str, list[str]]]:
    """The table: each quantity's words, and its value for each medium, rounded and with its unit."""
    means = [
        compared([each.result for each in runs if each.medium == medium and each.result])
        for medium in media_of(runs)
    ]
    lines = [("runs with a result", [_count(runs, medium) for medium in media_of(runs)])]
    return lines + [(each.label, [_cell(mean[each.key]) for mean in means]) for each in COMPARED]


def _count(runs: Sequence[MediumRun], medium: str) -> str:
    own = [each for each in runs if each.medium == medium]
    return f"{sum(each.result is not None for each in own)} of {len(own)}"


def _cell(number: Mapping[str, Any]) -> str:
    if number["value"] is None:
        return NONE
    return str(rounded(number["value"], number["u"], number["unit"]))


def notes(runs: Sequence[MediumRun]) -> list[str]:
    """Why a run has no result, or came to its end with faults; one line each."""
    lines = []
    if max((each.block for each in runs), default=0) == 1:
        lines.append("one run a medium: the spread between runs is not in these intervals (--repeats)")
    for each in runs:
        if each.result is None:
            lines.append(f"{each.folder} (block {each.block}, {each.medium}): no result: {each.why}")
        elif each.status != "complete":
            lines.append(f"{each.folder} (block {each.block}, {each.medium}): {each.status}")
    return lines


def print_media(directory: Path, console: Console | None = None) -> None:
    """Prints the table of all media, why a run is missing from it, and where everything is.

    Raises: RecordFault: no readable media.json.
    """
    runs, simulated = read_index(directory)
    console = console or Console(highlight=False, markup=False)
    shown = Table(f"mean of blocks{' (SIMULATED)' if simulated else ''}, k = 2", *media_of(runs), box=None)
    for title, values in cells(runs):
        shown.add_row(title, *values)
    console.print(shown)
    for line in notes(runs):
        console.print(line, soft_wrap=True)
    console.print(f"records    {directory}", soft_wrap=True)
    console.print(f"report     {directory / 'report.html'}", soft_wrap=True)


def write_media_report(directory: Path) -> Path:
    """Writes report.html over all runs, with a link to the page of each.

    Raises: RecordFault: no readable media.json.
    """
    runs, simulated = read_index(directory)
    title = f"{', '.join(media_of(runs))} side by side{' (SIMULATED)' if simulated else ''}"
    body = [element("h1", title)]
    if simulated:
        words = "No board and no meter was measured; these joules come from a power model."
        body.append(element("p", element("strong", "SIMULATED"), f" {words}", class_="banner simulated"))
    media = [row(name, *values) for name, values in cells(runs)]
    body.append(table(["mean of blocks", *media_of(runs)], media, "Media side by side, k = 2"))
    body.append(
        table(
            ["run", "block", "medium", "status", "why"], [_run_row(each) for each in runs], "Runs as measured"
        )
    )
    frame = Template((_HERE / "assets" / "media.html").read_text(encoding="utf-8"))
    style = (_HERE / "assets" / "report.css").read_text(encoding="utf-8")
    page = frame.substitute(
        title=text_of(element("title", f"{title}: OpJoule")), style=style, body=text_of(*body)
    )
    target = directory / "report.html"
    write_whole(target, page.encode())
    return target


def _run_row(run: MediumRun) -> Element:
    name: Element | str = run.folder
    if run.status != "not measured":
        name = element("a", run.folder, href=f"{run.folder}/report.html")
    return row(name, str(run.block), run.medium, run.status, run.why)
