"""report.html: one run record as one self-contained page that opens from disk, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opjoule.drawing.chart import chart_content, chart_frame, chart_scripts
from opjoule.drawing.markup import element
from opjoule.files import write_whole
from opjoule.opened.answer import Answer, open_answer
from opjoule.record.run_record import RunRecord
from opjoule.report import sections
from opjoule.report.activity_stack import activity_stack
from opjoule.report.figure import trace_figure
from opjoule.report.latency_histogram import latency_histogram
from opjoule.report.page import framed, section
from opjoule.report.panels import panels
from opjoule.report.provenance import losses, provenance, sensor_errors
from opjoule.report.sections import phases_table, repeats_table
from opjoule.report.timeline import Timeline, read_timeline
from opjoule.units import Missing


def write_report(of: Path | RunRecord, timeline: Timeline | None = None) -> Path:
    """Writes `report.html` of a record, however its run ended; returns its path. Raises: RecordFault: unreadable."""
    answer = open_answer(of)
    page = render(answer, timeline or read_timeline(answer.record))
    target = answer.record.path("report.html")
    write_whole(target, page.encode())
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
            *phases_table(answer.result),
            *repeats_table(answer.concluded.by_repeat, answer.quantities),
            *sections.latency(answer, timeline.latency),
            *latency_histogram(timeline.latency_counts),
            *sections.breakdown(answer.result, "by_operation", "By kind of operation", "operation"),
            *sections.breakdown(answer.result, "by_activity", "By activity", "activity"),
            *activity_stack(answer.record, answer.result),
            *sections.components(answer),
            *sections.budgets(answer),
            *sensor_errors(answer),
            *sections.quantities(answer),
        ),
        section("provenance", "Where these numbers come from", *provenance(answer)),
    ]
    banners = sections.banners(answer)
    return framed(answer.title, banners, main, chart_scripts(content(answer, timeline)))


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
        idle_power=None if isinstance(idle, Missing) else {"value_w": idle.value, "u_w": idle.u},
    )
