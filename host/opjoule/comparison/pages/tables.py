"""Tables of a page over several runs: every cell with all compared quantities, and every run with a link to its
page."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from opjoule.comparison.compared_run import ComparedRun
from opjoule.comparison.index import ConditionRun
from opjoule.comparison.plotted import Plotted, PlottedCell
from opjoule.comparison.run_warnings import marks_of
from opjoule.comparison.value_words import quantity_words
from opjoule.drawing.markup import Element, element, row, table
from opjoule.opened.quantities import NONE, Row, quantity


def all_cells(cells: Plotted, folder: Path) -> Element:
    """Each cell with the mean of every quantity that its study compares, and links to its runs."""
    by_key = {
        definition.key: definition for run in cells.runs for definition in run.quantities.shown("compared")
    }
    # A quantity without a value in any cell has no column.
    shown = [
        of for of in by_key.values() if any(cell.number(of.key).value is not None for cell in cells.cells)
    ]
    marks = [marks_of(cell.runs) for cell in cells.cells]
    body = []
    for cell, cell_marks in zip(cells.cells, marks, strict=True):
        lines = [Row(of.key, of.label, of.meaning, cell.number(of.key)) for of in shown]
        figures = [element("span", line.brief, class_="figure", title=line.reason or None) for line in lines]
        warned = [", ".join(cell_marks) or NONE] if any(marks) else []
        body.append(row(cells.name_of(cell), *figures, _links(cell, folder), *warned))
    warned = ["warnings"] if any(marks) else []
    head = ["cell", *(quantity_words(definition) for definition in shown), "runs", *warned]
    return table(head, body, "Means of every cell (95 %), and their runs", class_="cells")


def _links(cell: PlottedCell, folder: Path) -> Element:
    links = element("span", class_="links")
    for number, run in enumerate(cell.runs, 1):
        if number > 1:
            links.append(element("span", " "))
        links.append(linked(run.place, folder, str(number), f"run {number}: {run.place.name}"))
    return links


def linked(place: Path, folder: Path, words: str, label: str = "") -> Element:
    """A link from a page in a folder to a record's own page; only the words if it has none."""
    target = place / "report.html"
    if not target.exists():
        return element("span", words)
    address = quote(os.path.relpath(target.resolve(), folder))
    return element("a", words, href=address, aria_label=label or None)


def all_runs(index: Sequence[ConditionRun], runs: Sequence[ComparedRun], folder: Path) -> Element:
    """A row for each measurement, in order of time: how it ended, and the headline.

    `index`: a campaign's, including failed and repeated runs; empty for a comparison. `runs`: runs with a result.
    """
    of_place = {run.place.resolve(): run for run in runs}
    lines = [_run_line(of_place.get((folder / entry.folder).resolve()), folder, entry) for entry in index]
    lines = lines or [_run_line(run, folder) for run in runs]
    head = ["run", "what", "began (UTC)", "ended", "headline, or why there is none"]
    body = [line for _, line in sorted(lines, key=lambda line: line[0])]
    return table(head, body, "Runs in the order of time", class_="every-run")


def _run_line(
    run: ComparedRun | None, folder: Path, named: ConditionRun | None = None
) -> tuple[str, Element]:
    """Sort key and row of a run; a run that never started comes last."""
    place = folder / named.folder if named else run.place if run else folder
    what, status = (f"{named.name}, block {named.block}", named.status) if named else ("", "")
    headline, started = named.why if named else "", ""
    if run:
        about = (run.subject, run.words("storage"), run.words("device"))
        what = what or " ".join(run.condition.values()) or ", ".join(filter(None, about))
        status, started, of = status or run.status, run.started_utc, run.quantities.headline
        headline = Row(of.key, of.label, of.meaning, quantity(run.numbers, of.key)).text
    line = row(
        linked(place, folder, place.name),
        what,
        started.replace("T", " ").partition(".")[0] or NONE,
        element("span", status, class_="good" if status == "complete" else "bad"),
        headline or NONE,
    )
    return f"{started or '~'} {place.name}", line
