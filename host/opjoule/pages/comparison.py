"""The page of a comparison or a campaign: conclusions, ratios, every cell and run, the order in time, and troubles."""

import math
import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from opjoule.base.files import write_whole
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.scripts import program
from opjoule.base.settings import MEDIUM
from opjoule.base.units import counted
from opjoule.pages.drawing.drawing import Drawing, Mark, Ratio, Ratios
from opjoule.pages.drawing.page import Element, asset, element, header, page, row, section, table
from opjoule.pages.drawing.shown import ratio_axis, ratios_table, shown
from opjoule.pages.plots.cells import plots
from opjoule.pages.plots.cells.bars import bars
from opjoule.pages.plots.cells.course import Drift, course, drift_of
from opjoule.results.answer import SIMULATED
from opjoule.results.comparison.cell import ComparedCell, Plotted
from opjoule.results.comparison.compared_run import NOT_JUDGED, SIDE, TWO_COSTS, ComparedRun, costs_in
from opjoule.results.comparison.conclusion import Answers, answers_of, notes, verdict
from opjoule.results.comparison.contrasts import Compared, Contrast
from opjoule.results.comparison.index import ConditionRun, read_index, with_result
from opjoule.results.comparison.run_warnings import marks_of, methods, summary_of
from opjoule.results.comparison.sentences import (
    NO_DIFFERENCE,
    chance_name,
    follows_words,
    pair_labels,
    sentence,
)
from opjoule.results.comparison.value_words import NAMED, label, listed, noun, quantity_words
from opjoule.results.long_table import Row
from opjoule.results.rounding import NONE, quantity_text
from opjoule.runs.evaluation.quantities.definition import Definition

ROWS_MAX: Final = 60
"""Number of rows above which a table is folded."""
LINES_MAX: Final = 8
"""Greatest number of conclusions at the top."""


def comparison_page(compared: Compared, left_out: Sequence[str], target: Path, command: Sequence[str]) -> str:
    """Page of one comparison, to be written to `target`; `left_out`: reasons for records that are left out."""
    is_change = compared.question.by == (SIDE,)
    by = "before and after" if is_change else "by " + ", ".join(compared.question.by)
    what = listed([quantity_words(of) for of in compared.quantities])
    has_verdict = is_change and compared.judged > 0
    troubles = [*compared.notes, *(f"left out: {reason}" for reason in left_out)]
    return _rendered(
        f"{what[:1].upper()}{what[1:]} {by}",
        "OpJoule comparison",
        _about_comparison(compared),
        target.resolve().parent,
        Answers([compared], _as_cells(compared), "", troubles),
        command,
        simulated=compared.simulated,
        verdict=verdict(compared)[0] if has_verdict else "",
    )


def write_campaign_page(folder: Path, named: str = "", *, goes_on: bool = False) -> Path:
    """Writes report.html over all runs of a folder with an index, compared by each of its axes; returns its path.

    Args:
        named: folder in the page's command, if it will be moved.
        goes_on: further runs will be measured; the page says when it was written, and a browser loads it again.
    Raises: RecordFault: no readable index.
    """
    index, simulated = read_index(folder)
    source = _rendered(
        folder.resolve().name,
        "OpJoule campaign",
        _about_campaign(index),
        folder.resolve(),
        answers_of(with_result(index)),
        (*program("report").split(), named or str(folder)),
        simulated=simulated,
        index=index,
        goes_on=goes_on,
    )
    target = folder / "report.html"
    write_whole(target, source.encode())
    return target


def _rendered(
    title: str,
    kicker: str,
    about: str,
    folder: Path,
    answers: Answers,
    command: Sequence[str],
    *,
    simulated: bool,
    index: Sequence[ConditionRun] = (),
    verdict: str = "",
    goes_on: bool = False,
) -> str:
    """The page's source.

    Args:
        about: subject of the measurement, in one line.
        folder: folder of the page; links to the runs' own pages are relative to it.
        command: command that writes the same page.
        index: all measurements of a campaign's cells.
        goes_on: further runs will be measured.
    """
    mark = " (SIMULATED)" if simulated else ""
    notices = [Notice(NoticeKind.SIMULATED, SIMULATED)] if simulated else []
    lacking = sorted({run.name for run in index} - {run.name for run in index if run.run})
    if lacking:
        notices.append(Notice(NoticeKind.INCOMPLETE, f"no run has a result of: {', '.join(lacking)}"))
    main = [_head(f"{title}{mark}", kicker, about, verdict, answers.conclusions)]
    if goes_on:
        main[0].append(_written_now())
    if answers.compared:
        main.append(section("ratios", f"What differs{mark}", *_ratios(answers.compared)))
    cells = answers.cells
    if cells:
        main += _of_cells(answers, cells, folder, mark)
    troubles = [*notes(index), *answers.troubles]
    lines = element("ul", *(element("li", line) for line in troubles))
    fine = element("p", "Everything is comparable, nothing failed, nothing was measured again.")
    main.append(section("troubles", "Further notes", lines if troubles else fine))
    runs = cells.runs if cells else []
    table = _folded(all_runs(index, runs, folder), len(index or runs), "every run")
    main.append(section("runs", "Every run", table))
    main.append(section("methods", "How it was measured", *_methods(cells, command)))
    scripts = f"<script>\n{asset('renewing.js')}</script>" if goes_on else ""
    return page(f"{title}{mark}", [*notices, *answers.warnings], main, scripts)


def _written_now() -> Element:
    now = datetime.now(UTC)
    stamp = element("time", f"{now:%Y-%m-%d %H:%M} UTC", id="written", datetime=now.isoformat())
    return element("p", "The campaign goes on: written ", stamp, "; this page renews itself.", class_="workload")


def _head(title: str, kicker: str, about: str, verdict: str, conclusions: Sequence[str]) -> Element:
    said = element("p", f"Verdict: {verdict}", class_="number") if verdict else None
    lines = [element("li", conclusion) for conclusion in conclusions[:LINES_MAX]]
    if more := len(conclusions) - len(lines):
        lines.append(element("li", f"{more} more are below."))
    concluded = element("ul", *lines, class_="conclusions")
    if not conclusions:
        concluded = element("p", "Nothing can be concluded yet. The reasons are below.", class_="what")
    return header(title, kicker, said, concluded, about)


def _about_campaign(index: Sequence[ConditionRun]) -> str:
    """The campaign's axes with their values, its blocks, and its progress."""
    axes: dict[str, dict[str, None]] = {}
    for run in sorted(index, key=lambda run: run.rank):
        for axis, value in run.condition.items():
            axes.setdefault(noun([axis]), {})[label(axis, value)] = None
    blocks = len({run.block for run in index})
    cells = {(run.block, run.name): False for run in index}
    cells |= {(run.block, run.name): True for run in index if run.run}
    shown = "; ".join(f"{axis}: {', '.join(values)}" for axis, values in axes.items())
    return f"{shown}; {counted(blocks, 'block')}, {sum(cells.values())} of {len(cells)} cells with a result"


def _about_comparison(compared: Compared) -> str:
    strata = {tuple(group.stratum.values()): None for group in compared.groups if group.stratum}
    runs = sum(len(group.runs) for group in compared.groups)
    inside = f", in each of {', '.join(' '.join(values) for values in strata)}" if strata else ""
    return f"{', '.join(dict.fromkeys(group.name for group in compared.groups))}{inside}; {runs} runs"


def _ratios(answers: Sequence[Compared]) -> list[Element]:
    judged = sum(answer.judged for answer in answers)
    both = any(costs_in(answer.quantities) for answer in answers)
    told = any(answer.told for answer in answers)
    about = [*([TWO_COSTS] if both else []), *([NOT_JUDGED] if told else [])]
    lines = [*about, _HOW_TO_READ.format(judged=judged)]
    parts = [element("p", line, class_="reason") for line in lines]
    for answer in answers:
        for of in answer.with_ratios:
            words = f"{quantity_words(of)} by {noun(answer.question.by)}"
            parts.append(_folded(ratios_table(ratios(answer, of)), len(answer.contrasts_of(of)), words))
        if (count := len(answer.answering)) > 1:
            items = [element("li", sentence(contrast, answer)) for contrast in answer.answering]
            words = f"the {count} comparisons by {noun(answer.question.by)} in words"
            parts.append(element("details", element("summary", words), element("ul", *items)))
    return parts


_HOW_TO_READ: Final = (
    "Each ratio is the first of the pair over the second. The thick bar is the 95.45 % interval of this ratio; the "
    "thin bar is the simultaneous interval for all {judged} ratios (Bonferroni). A full mark: the two differ, by "
    "Holm's test over all pairs, whose p-value is p (Holm). A hollow mark: no difference was found. A grey mark: "
    "not judged, or single runs, or runs that are too short, allow no conclusion. The intervals leave out what both "
    "sides share, such as the gain of one sensor. An arrow: the interval continues."
)


def _of_cells(answers: Answers, cells: Plotted, folder: Path, mark: str) -> list[Element]:
    table = all_cells(cells, folder)
    if answers.refused:
        return [section("cells", f"Every cell{mark}", table)]
    compared = {quantity.key: quantity for answer in answers.compared for quantity in answer.shown}
    quantities = list(compared.values()) or [cells.runs[0].quantities.headline, *cells.told]
    of_plots = [(plot.name, plot.heading, plot.draw(cells)) for plot in plots() if plot.heading]
    sections = [
        ("cells", "Every cell", [*(part for of in quantities for part in shown(bars(cells, of))), table]),
        *((name, heading, shown(drawing)) for name, heading, drawing in of_plots if drawing),
        ("order", "In the order of measuring", _in_order(cells, quantities[0])),
    ]
    return [section(name, f"{heading}{mark}", *parts) for name, heading, parts in sections if parts]


def _in_order(cells: Plotted, of: Definition) -> list[Element]:
    """Each run relative to the mean of its cell, in order of time, and the effect of a drift on the comparisons."""
    drift = drift_of(cells, of.key)
    drawing = course(cells, of, drift)
    return [*shown(drawing), element("p", _drift_words(drift)), *_shifts(cells, drift)] if drawing else []


def _drift_words(drift: Drift) -> str:
    whole = drift.whole
    if whole is None:
        return "Drift cannot be judged: that needs at least two cells of several runs each."
    seen = "no drift is seen" if whole.covers(0.0) else "a drift is seen"
    change = quantity_text(whole.scale(100.0, "%"))
    return f"From the first run to the last a straight line through all of them changes by {change} (95.45 %): {seen}."


def _shifts(cells: Plotted, drift: Drift) -> list[Element]:
    """For each value of each axis: its mean place in time, and the shift of its mean by the drift."""
    body = []
    measured = {run.cell for run in drift.runs}
    for axis in (*cells.series_axes, *cells.group_axes):
        for value in dict.fromkeys(cell.values[axis] for cell in cells.cells):
            of_value = [at for at in measured if cells.cells[at].values[axis] == value]
            if not of_value:
                continue
            shift = drift.shift(of_value)
            words = NONE if shift is None else quantity_text(shift.scale(100.0, "%"))
            name = value if axis in NAMED else f"{noun([axis])} {value}"
            body.append(row(name, f"{drift.time_s(of_value) / 60:.1f} min", words))
    head = ["value", "mean time of its runs", "shift of its mean by the drift"]
    return [table(head, body, "Effect of the drift on each compared value")]


def _folded(table: Element, rows: int, words: str) -> Element:
    """A table, initially folded if it is long."""
    if rows <= ROWS_MAX:
        return table
    return element("details", element("summary", f"{rows} rows: {words}"), table)


def _methods(cells: Plotted | None, command: Sequence[str]) -> list[Element]:
    parts = [element("p", methods([cell.runs for cell in cells.cells]))] if cells else []
    line = element("pre", element("code", shlex.join(command)))
    return [*parts, element("h3", "To make this page again"), element("div", line, class_="command")]


def _as_cells(compared: Compared) -> Plotted:
    """The groups of a comparison as cells of a figure; the compared axes give the colours."""
    by = " ".join(compared.question.by)
    cells = [ComparedCell({by: group.label, **group.place_labels}, group.runs) for group in compared.groups]
    return Plotted(cells, [by], [axis for axis in cells[0].values if axis != by])


def all_cells(cells: Plotted, folder: Path) -> Element:
    """Each cell with the mean of every quantity that its study compares, and links to its runs."""
    by_key = {definition.key: definition for run in cells.runs for definition in run.compared}
    # A quantity without a value in any cell has no column.
    shown = [of for of in by_key.values() if any(cell.number(of.key).value is not None for cell in cells.cells)]
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


def _links(cell: ComparedCell, folder: Path) -> Element:
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


def _run_line(run: ComparedRun | None, folder: Path, named: ConditionRun | None = None) -> tuple[str, Element]:
    """Sort key and row of a run; a run that never started comes last."""
    place = folder / named.folder if named else run.place if run else folder
    what, status = (f"{named.name}, block {named.block}", named.status) if named else ("", "")
    headline, started = named.why if named else "", ""
    if run:
        about = (run.subject, run.words(MEDIUM), run.words("device"))
        what = what or " ".join(run.condition.values()) or ", ".join(filter(None, about))
        status, started, of = status or run.status, run.started_utc, run.quantities.headline
        headline = Row(of.key, of.label, of.meaning, run.number(of.key)).text
    line = row(
        linked(place, folder, place.name),
        what,
        started.replace("T", " ").partition(".")[0] or NONE,
        element("span", status, class_="good" if status == "complete" else "bad"),
        headline or NONE,
    )
    return f"{started or '~'} {place.name}", line


def forest(compared: Compared) -> Drawing:
    """The ratios of each quantity, with the interval of each (95.45 %) and the simultaneous one of all."""
    panels = [ratios(compared, of) for of in compared.with_ratios]
    warnings = summary_of(group.runs for group in compared.groups)
    return Drawing(panels, rest=NO_DIFFERENCE, simulated=compared.simulated, warnings=warnings)


def ratios(compared: Compared, of: Definition) -> Ratios:
    """The ratios of one quantity."""
    contrasts = compared.contrasts_of(of)
    axis = ratio_axis(
        (float(contrast.ratio), contrast.limits, contrast.limits_together or contrast.limits)
        for contrast in contrasts
        if contrast.ratio
    )
    mark = ", SIMULATED" if compared.simulated else ""
    chance = chance_name(max(contrast.judged for contrast in contrasts))
    caption = f"{quantity_words(of)}: ratios by {noun(compared.question.by)}{mark}"
    return Ratios(f"ratio of {quantity_words(of)}", [*map(_ratio, contrasts)], axis, chance, caption)


def _ratio(contrast: Contrast) -> Ratio:
    where, a, b = pair_labels(contrast)
    return Ratio(
        f"{where + ': ' if where else ''}{a} / {b}",
        contrast.ratio.value if contrast.ratio else None,
        contrast.limits if contrast.ratio else (0.0, math.inf),
        contrast.limits_together if contrast.judged > 1 else None,
        Mark.OPEN if contrast.adjusted is None else Mark.DIFFERENT if contrast.differs else Mark.ALIKE,
        contrast.adjusted,
        follows_words(contrast, a),
    )
