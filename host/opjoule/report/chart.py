"""The time chart of a page: its frame, what its script draws, and the script itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opjoule.report.board_tracks import Lane
from opjoule.report.markup import Element, element, embedded_json
from opjoule.report.packing import pack_times
from opjoule.report.page import asset, vendored
from opjoule.report.timeline import LostStretch, PhaseSpan, phase_kind
from opjoule.report.tracks import Track

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


def chart_scripts(content: Mapping[str, Any]) -> str:
    """Script elements that draw the chart, as they stand behind a page's content."""
    return "\n".join(
        (
            f'<script type="application/json" id="content">{embedded_json(content)}</script>',
            f"<script>\n{vendored('uPlot.iife.min.js')}\n</script>",
            "<script>\n" + "\n".join(asset(name) for name in _SCRIPTS) + "\n</script>",
        )
    )


def chart_content(
    duration_s: float,
    tracks: Mapping[str, Track],
    phases: Sequence[PhaseSpan],
    panels: Sequence[Mapping[str, Any]],
    *,
    lost: Sequence[LostStretch] = (),
    lanes: Sequence[Lane] = (),
    idle_power: Mapping[str, float | None] | None = None,
) -> dict[str, Any]:
    """What the script draws, packed.

    Args:
        panels: from top to bottom; each names its track.
        idle_power: value and uncertainty (k = 2) [W], for the energy above idle in view; None if unknown.
    """
    return {
        "duration_s": duration_s,
        "tracks": {name: track.packed for name, track in tracks.items()},
        "phases": [
            {
                "name": phase.name,
                "kind": phase_kind(phase.name),
                "start_s": phase.start_s,
                "end_s": phase.end_s,
            }
            for phase in phases
        ],
        "gaps": {
            "start_s": pack_times(np.array([one.start_s for one in lost], np.float64)),
            "end_s": pack_times(np.array([one.end_s for one in lost], np.float64)),
            "lost_samples": [one.lost_samples for one in lost],
        },
        "lanes": [
            {"name": lane.name, "start_s": pack_times(lane.start_s), "end_s": pack_times(lane.end_s)}
            for lane in lanes
        ],
        "idle_power": idle_power,
        "panels": list(panels),
    }


def chart_frame(
    phases: Sequence[PhaseSpan], notes: Sequence[str] = (), still: Element | None = None
) -> list[Element]:
    """Buttons, read-out and panels.

    Args:
        notes: what the chart lacks, a line each.
        still: a picture for print and for readers without scripts.
    """
    shown = [element("p", note, class_="reason") for note in notes]
    repeats = len({phase.repeat for phase in phases}) > 1
    buttons = [
        element(
            "button",
            f"{phase.name} {phase.repeat}" if repeats else phase.name,
            type="button",
            data_start=phase.start_s,
            data_end=phase.end_s,
            class_=f"phase {phase_kind(phase.name)}",
        )
        for phase in phases
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
    stills = [element("div", still, class_="still")] if still is not None else []
    return [*shown, chart, *stills, element("p", _CHART_NOTE, class_="chart-note")]


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
