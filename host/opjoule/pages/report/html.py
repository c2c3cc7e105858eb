"""report.html: one run record as one self-contained page that opens from disk, without a network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from opjoule.base.files import write_whole
from opjoule.pages.drawing.page import (
    chart_content,
    chart_frame,
    chart_scripts,
    chart_series,
    chart_value,
    element,
    page,
    panel,
    power_panel,
    section,
)
from opjoule.pages.drawing.shown import KINDS
from opjoule.pages.report import sections
from opjoule.pages.report.pictures import activity_stack, latency_histogram, trace_figure
from opjoule.pages.report.provenance import losses, provenance, sensor_errors
from opjoule.pages.report.sections import phases_table, repeats_table
from opjoule.pages.report.timeline import Timeline, read_timeline
from opjoule.results.answer import Answer, open_answer
from opjoule.runs.record.run_record import RunRecord


def write_report(of: Path | RunRecord, timeline: Timeline | None = None) -> Path:
    """Writes `report.html` of a record, however its run ended; returns its path. Raises: RecordFault: unreadable."""
    answer = open_answer(of)
    target = answer.record.path("report.html")
    write_whole(target, render(answer, timeline or read_timeline(answer.record)).encode())
    return target


def render(answer: Answer, timeline: Timeline) -> str:
    """HTML of the page."""
    if "power" in timeline.tracks:
        # The static picture is for print and for readers without scripts.
        chart = chart_frame(timeline.notes, trace_figure(answer, timeline))
    else:
        chart = [element("p", note, class_="reason") for note in timeline.notes]
    main = [
        sections.headline(answer),
        section("trace", "Power and work over time", *chart, *losses(timeline.lost)),
        section(
            "numbers",
            "Numbers",
            *phases_table(answer),
            *repeats_table(answer.concluded.by_repeat, answer.quantities),
            *sections.latency(answer, timeline.latency),
            *latency_histogram(timeline.latency_counts),
            *sections.breakdown(answer.result, "by_operation", "By kind of operation", "operation"),
            *sections.breakdown(answer.result, "by_activity", "By activity", "activity"),
            *activity_stack(answer.record, answer.result),
            *sections.components(answer),
            *sections.budgets(answer),
            *sensor_errors(answer),
            *sections.battery(answer),
            *sections.quantities(answer),
        ),
        section("provenance", "Where these numbers come from", *provenance(answer)),
    ]
    scripts = f"{chart_scripts(content(answer, timeline))}\n<script>\n{_BATTERY.read_text(encoding='utf-8')}</script>"
    return page(answer.title, answer.notices, main, scripts)


def content(answer: Answer, timeline: Timeline) -> dict[str, Any]:
    """Packed data of the page's chart."""
    idle = answer.quantity("idle_power_w")
    return chart_content(
        timeline.duration_s,
        timeline.tracks,
        timeline.phases,
        panels(answer, timeline),
        lost=timeline.lost,
        lanes=timeline.lanes,
        idle_power=None if idle.value is None else {"value_w": idle.value, "u_w": idle.u},
    )


_BATTERY: Final = Path(__file__).parent / "assets" / "battery.js"
LANE_HEIGHT = 24
KIND_COLOURS = tuple(f"--kind-{number}" for number in range(KINDS))


def panels(answer: Answer, timeline: Timeline) -> list[dict[str, Any]]:
    """Panels of the time chart, for drawing/assets/panels.js; one whose data the record lacks is left out."""
    if "power" not in timeline.tracks:
        return []
    made = [_power(answer)]
    if "operations" in timeline.tracks:
        made.append(_operations(list(timeline.tracks["operations"].mean)))
    if timeline.lanes:
        made.append(panel("activity", "power", LANE_HEIGHT * len(timeline.lanes) + 10, lanes=True))
    if "system" in timeline.tracks:
        mean = timeline.tracks["system"].mean
        known = {column for column, values in mean.items() if np.isfinite(values).any()}
        made += [one for one in _system() if known & {line["column"] for line in one["series"]}]
    return made


def _power(answer: Answer) -> dict[str, Any]:
    idle = answer.quantity("idle_power_w")
    levels = [] if idle.value is None else [{"label": f"idle {idle.value:.2f} W", "value": idle.value}]
    return power_panel(260, levels)


def _operations(columns: list[str]) -> dict[str, Any]:
    """Panel of all operations and, if there is more than one kind, of each kind."""
    total, *by_kind = columns
    series, readout = [], [chart_value(total, "operations", "/s", 0)]
    if len(by_kind) > 1:
        names = [column.removesuffix("_per_s") for column in by_kind]
        series += [chart_series(*line) for line in zip(by_kind, names, KIND_COLOURS, strict=False)]
        readout += [chart_value(column, name, "/s", 0) for column, name in zip(by_kind, names, strict=True)]
    # Last, so that it is drawn on top.
    series.append(chart_series(total, "all", "--operations"))
    return panel("operations /s", "operations", 140, series, readout, from_zero=True)


def _system() -> list[dict[str, Any]]:
    """Panels of processor, medium and dirty pages, for the board and for the workload on it."""
    cores, rate, size = ("cores", 2), ("MB/s", 1), ("MB", 1)
    return [
        _panel("busy cores", (("board_cores", "board", "--cpu", "CPU", *cores),
                              ("process_cores", "workload", "--kind-1", "CPU of the workload", *cores))),
        _panel("I/O, MB/s", (("written_mb_per_s", "written", "--written", "disk written", *rate),
                             ("read_mb_per_s", "read", "--read", "disk read", *rate))),
        _panel("dirty, MB", (("dirty_mb", "dirty pages", "--dirty", "dirty pages", *size),)),
    ]  # fmt: skip


def _panel(title: str, lines: Sequence[tuple[str, str, str, str, str, int]]) -> dict[str, Any]:
    """A panel of the board's counters. A line is (column, name, colour, and name, unit and digits in the read-out)."""
    series = [chart_series(column, name, colour) for column, name, colour, *_ in lines]
    readout = [chart_value(column, words, unit, digits) for column, _, _, words, unit, digits in lines]
    return panel(title, "system", 110, series, readout, from_zero=True)
