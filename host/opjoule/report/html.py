"""report.html: one run record as one self-contained page that opens from disk, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from opjoule.files import write_whole
from opjoule.record.run_record import RunRecord
from opjoule.report import sections
from opjoule.report.activity_stack import activity_stack
from opjoule.report.answer import Answer, open_answer
from opjoule.report.figure import trace_figure
from opjoule.report.latency_histogram import latency_histogram
from opjoule.report.markup import Element, element, embedded_json
from opjoule.report.packing import Floats, pack_times
from opjoule.report.page import asset, framed, section, vendored
from opjoule.report.panels import panels
from opjoule.report.phase_energies import phases_table
from opjoule.report.provenance import losses, provenance
from opjoule.report.repeats import repeats_table
from opjoule.report.timeline import Timeline, phase_kind, read_timeline
from opjoule.units import Measured, Missing

_SCRIPTS = (
    "packing.js",
    "pyramid.js",
    "series.js",
    "marks.js",
    "panels.js",
    "readout.js",
    "touch.js",
    "chart.js",
    "page.js",
)


def write_report(of: Path | RunRecord, timeline: Timeline | None = None) -> Path:
    """Writes `report.html` of a run record, whatever state the run ended in.

    Args:
        of: the record, or its directory; parts that are missing or unreadable are named in the page.
        timeline: the record's, where it is at hand; None: it is read.
    Returns: the path of the page, replaced as a whole.
    Raises: RecordFault: no readable run.json.
    """
    answer = open_answer(of)
    page = render(answer, timeline or read_timeline(answer.record))
    target = answer.record.path("report.html")
    write_whole(target, page.encode())
    return target


def render(answer: Answer, timeline: Timeline) -> str:
    """The page's source."""
    main = [
        sections.headline(answer),
        section("trace", "Power and work over time", *_chart(answer, timeline), *losses(timeline.lost)),
        section("numbers", "Numbers", *_numbers(answer, timeline)),
        section("provenance", "Where these numbers come from", *provenance(answer)),
    ]
    scripts = [
        f'<script type="application/json" id="content">{embedded_json(content(answer, timeline))}</script>',
        f"<script>\n{vendored('uPlot.iife.min.js')}\n</script>",
        "<script>\n" + "\n".join(asset(name) for name in _SCRIPTS) + "\n</script>",
    ]
    banners = sections.banners(answer)
    return framed(answer.title, banners, main, "\n".join(scripts), vendored("uPlot.min.css"))


def content(answer: Answer, timeline: Timeline) -> dict[str, Any]:
    """What the page's script draws, packed."""
    return {
        "duration_s": timeline.duration_s,
        "tracks": {name: track.packed for name, track in timeline.tracks.items()},
        "phases": [
            {
                "name": phase.name,
                "kind": phase_kind(phase.name),
                "start_s": phase.start_s,
                "end_s": phase.end_s,
            }
            for phase in timeline.phases
        ],
        "gaps": {
            "start_s": pack_times(_array([one.start_s for one in timeline.lost])),
            "end_s": pack_times(_array([one.end_s for one in timeline.lost])),
            "lost_samples": [one.lost_samples for one in timeline.lost],
        },
        "lanes": [
            {"name": lane.name, "start_s": pack_times(lane.start_s), "end_s": pack_times(lane.end_s)}
            for lane in timeline.lanes
        ],
        "idle_power": _idle_power(answer),
        "panels": panels(answer, timeline),
    }


def _idle_power(answer: Answer) -> dict[str, float | None] | None:
    """Idle power and its uncertainty (k = 2) [W], for the energy above idle in view; None if unknown."""
    idle = answer.quantity("idle_power_w")
    if isinstance(idle, Missing):
        return None
    return {"value_w": idle.value, "u_w": idle.u if isinstance(idle, Measured) else None}


def _chart(answer: Answer, timeline: Timeline) -> list[Element]:
    """The chart's frame: buttons, read-out, panels, and the still picture for print and for readers without scripts."""
    notes = [element("p", note, class_="reason") for note in timeline.notes]
    if "power" not in timeline.tracks:
        return notes
    still = element("div", trace_figure(answer, timeline), class_="still")
    repeats = len({phase.repeat for phase in timeline.phases}) > 1
    buttons = [
        element(
            "button",
            f"{phase.name} {phase.repeat}" if repeats else phase.name,
            type="button",
            data_start=phase.start_s,
            data_end=phase.end_s,
            class_=f"phase {phase_kind(phase.name)}",
        )
        for phase in timeline.phases
    ]
    moves = [
        element("button", sign, type="button", data_do=action, aria_label=words, title=f"{words} ({key})")
        for sign, action, words, key in _MOVES
    ]
    zero = element("label", element("input", type="checkbox", id="from-zero"), " power from 0 W")
    tools = element(
        "div",
        *moves,
        *([element("div", *buttons, class_="phases")] if buttons else []),
        zero,
        class_="tools",
        role="toolbar",
        aria_label="time chart",
    )
    stack = element("div", class_="panels", tabindex="0", role="application", aria_label=_CHART_LABEL)
    view = element("p", class_="in-view", role="status", aria_live="polite")
    chart = element(
        "div",
        tools,
        element("dl", class_="readout"),
        stack,
        view,
        id="chart",
    )
    return [*notes, chart, still, element("p", _CHART_NOTE, class_="chart-note")]


_MOVES = (
    ("\N{MINUS SIGN}", "out", "zoom out", "-"),
    ("+", "in", "zoom in", "+"),
    ("\N{LEFTWARDS ARROW}", "left", "move left", "left arrow"),
    ("\N{RIGHTWARDS ARROW}", "right", "move right", "right arrow"),
    ("whole run", "whole", "show the whole run", "0"),
)
_CHART_LABEL = (
    "Power, operation rate and system load over time. Keys: plus and minus zoom, arrows move, Shift with arrows moves "
    "the read-out, 0 shows the whole run, Home and End go to its ends."
)
_CHART_NOTE = (
    "Drag to move, Shift and drag to zoom into a stretch, double click for the whole run; the wheel zooms once the "
    "chart is clicked. Keys: + - arrows, Shift with arrows for the read-out, 0, Home, End. Touch: one finger reads "
    "values, two zoom and move. The light band reaches from "
    "the lowest to the highest sample, the line is the mean; zoomed in, each sample is drawn over the time for which "
    "it counts. "
    "Hatched: samples were lost, nothing is drawn across."
)


def _numbers(answer: Answer, timeline: Timeline) -> list[Element]:
    """All tables of numbers."""
    return [
        *phases_table(answer.result),
        *repeats_table(answer.concluded.by_repeat, answer.quantities),
        *sections.latency(answer, timeline.latency),
        *latency_histogram(timeline.latency_counts),
        *sections.breakdown(answer.result, "by_operation", "By kind of operation", "operation"),
        *sections.breakdown(answer.result, "by_activity", "By activity", "activity"),
        *activity_stack(answer.record),
        *sections.components(answer),
        *sections.budgets(answer),
        *sections.quantities(answer),
    ]


def _array(numbers: list[float]) -> Floats:
    return np.array(numbers, dtype=np.float64)
