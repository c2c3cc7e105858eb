"""The time chart of a page: its frame, its data, and its script."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from opjoule.pages.drawing.page import Element, asset, element, embedded_json, text_file
from opjoule.results.tracks import Lane, LostStretch, PhaseSpan, Track, pack_times, phase_kind


def chart_scripts(content: Mapping[str, Any]) -> str:
    """Script elements that draw the chart, to be placed after a page's content."""
    return (
        f'<script type="application/json" id="content">{embedded_json(content)}</script>\n'
        f"<script>\n{library_script()}\n{asset('page.js')}\n</script>"
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
    """Packed data of the chart for its script.

    Panels are ordered from top to bottom, and each names its track. `idle_power`: value and uncertainty (95 %) [W], for
    the energy above idle in view.
    """
    stretches = [(lane.name, pack_times(lane.start_s), pack_times(lane.end_s)) for lane in lanes]
    return {
        "duration_s": duration_s,
        "tracks": {name: track.packed for name, track in tracks.items()},
        "phases": [{**asdict(phase), "kind": phase_kind(phase.name)} for phase in phases],
        "gaps": {
            "start_s": pack_times(np.array([one.start_s for one in lost], np.float64)),
            "end_s": pack_times(np.array([one.end_s for one in lost], np.float64)),
            "lost_samples": [one.lost_samples for one in lost],
        },
        "lanes": [{"name": name, "start_s": start, "end_s": end} for name, start, end in stretches],
        "idle_power": idle_power,
        "panels": list(panels),
    }


def panel(
    title: str, track: str, height: int, series: Sequence[Any] = (), readout: Sequence[Any] = (), **looks: Any
) -> dict[str, Any]:
    """A panel of the chart, for assets/panels.js.

    Args:
        title: quantity and unit.
        track: name of the track with the columns.
        height: [px].
        series: lines from chart_series(); readout: numbers from chart_value().
        looks: `from_zero`, `gaps` and `lanes` (True), `levels` (list of label and value).
    """
    return {"title": title, "track": track, "height": height, **looks, "series": [*series], "readout": [*readout]}


def chart_series(column: str, label: str, colour: str, *, envelope: bool = False) -> dict[str, Any]:
    """A line of a panel: a track's column, its name, and its colour in drawing.css."""
    return {"column": column, "label": label, "colour": colour, "envelope": envelope}


def chart_value(column: str, label: str, unit: str, digits: int, *, range_: bool = False) -> dict[str, Any]:
    """A number of the read-out: a track's column, its name, unit and digits."""
    return {"column": column, "label": label, "unit": unit, "digits": digits, "range": range_}


def power_panel(height: int, levels: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The panel of a measured power, whose read-out has current and voltage, too."""
    readout = [
        chart_value("power_w", "power", "W", 3, range_=True),
        chart_value("current_a", "current", "A", 4, range_=True),
        chart_value("voltage_v", "voltage", "V", 3, range_=True),
    ]
    line = chart_series("power_w", "power", "--power", envelope=True)
    return panel("power, W", "power", height, [line], readout, gaps=True, levels=[*levels])


def chart_frame(notes: Sequence[str] = (), still: Element | None = None) -> list[Element]:
    """Empty buttons, read-out and panels, which assets/chart.js fills.

    `notes`: what is missing in the chart; `still`: a picture for print and for readers without scripts.
    """
    moves = [
        element("button", sign, type="button", data_do=action, aria_label=words, title=f"{words} ({key})")
        for sign, action, words, key in _MOVES
    ]
    zero = element("label", element("input", type="checkbox", id="from-zero"), " power from 0 W")
    phases = element("div", class_="phases", id="phases")
    tools = element("div", *moves, phases, zero, class_="tools", role="toolbar", aria_label="time chart")
    stack = element("div", class_="panels", tabindex="0", role="application", aria_label=_CHART_LABEL)
    view = element("p", class_="in-view", role="status", aria_live="polite")
    shown = [element("p", note, class_="reason") for note in notes]
    chart = element("div", tools, element("dl", class_="readout"), stack, view, id="chart")
    stills = [element("div", still, class_="still")] if still is not None else []
    return [*shown, chart, *stills, element("p", _CHART_NOTE, class_="chart-note")]


_MOVES = (
    ("\N{MINUS SIGN}", "out", "zoom out", "-"),
    ("+", "in", "zoom in", "+"),
    ("\N{LEFTWARDS ARROW}", "left", "move left", "left arrow"),
    ("\N{RIGHTWARDS ARROW}", "right", "move right", "right arrow"),
    ("whole run", "whole", "show the whole run", "0"),
    ("selection", "chosen", "show the selected stretch", "z"),
    ("A", "begin", "set marker A, the selection's begin, at the read-out", "a or ["),
    ("B", "finish", "set marker B, the selection's end, at the read-out", "b or ]"),
)
_CHART_LABEL = (
    "Power, operation rate and system load over time. Keys: plus and minus zoom, arrows move, 0 shows the whole "
    "run, Home and End go to its ends. Shift with arrows moves the read-out. Enter selects what is in view, a "
    "and b, or opening and closing bracket, set its ends, the markers A and B, at the read-out, z shows it, Escape "
    "removes it."
)
_CHART_NOTE = (
    "Drag to select, Shift and drag to move, double click for the whole run; the wheel zooms once the chart is "
    "clicked. Keys: + - arrows, 0, Home, End; Shift with arrows moves the read-out; Enter selects what is in view, "
    "a and b, or [ and ], set the selection's ends, the markers A and B, at the read-out, z shows it, Escape removes "
    "it. A marker is moved by dragging. Touch: one finger reads values or moves a marker, the buttons A and B set "
    "them there, two fingers zoom and move. The light band reaches from the lowest to the highest sample, the line "
    "is the mean. Zoomed in, each sample is drawn over the time for which it counts. Hatched, and marked above: "
    "samples were lost, and nothing is drawn across."
)


_SCRIPTS: Final = ("packing", "pyramid", "series", "marks", "panels", "readout", "touch", "chart")
_PUBLIC: Final = "TimeChart, Pyramid, phaseButtons, shortestCell, unpackedTrack, unpackedTimes, indexAt, colour"


def library_script() -> str:
    """Script that defines one name, `drawing`, whose `TimeChart` draws (assets/chart.js describes its interface)."""
    parts = "\n".join(asset(f"{name}.js") for name in _SCRIPTS)
    made = f'const drawing = (() => {{\n"use strict";\n{parts}\nreturn {{ {_PUBLIC} }};\n}})();'
    return f"{text_file('vendor/uPlot.iife.min.js')}\n{made}"
