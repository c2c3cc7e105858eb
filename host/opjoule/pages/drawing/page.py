"""The page that every report is: one file that opens from disk without a network, in a dark and a light version.

Its elements, in HTML and SVG, come from the standard library's ElementTree, which escapes all text and attributes.
string.Template inserts them into the page's frame (assets/page.html). A template language would be a dependency for a
single page, and would leave escaping to each template. A script in the browser draws the time chart.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np

from opjoule.base.notices import Grade, Notice, NoticeKind
from opjoule.results.tracks import Lane, LostStretch, PhaseSpan, Track, pack_times, phase_kind

Element = ElementTree.Element
Child = Element | str | None


def element(tag: str, *children: Child, **attributes: object) -> Element:
    """An element. Attribute names are as in HTML, with `class_` and `for_` for Python's keywords and `_` for `-`."""
    stated = {name: str(value) for name, value in attributes.items() if value is not None}
    made = ElementTree.Element(tag, {name.rstrip("_").replace("_", "-"): stated[name] for name in stated})
    for child in children:
        append(made, child)
    return made


def append(parent: Element, child: Child) -> None:
    """Adds an element or text at the end."""
    if isinstance(child, ElementTree.Element):
        parent.append(child)
    elif child and len(parent):
        parent[-1].tail = (parent[-1].tail or "") + child
    elif child:
        parent.text = (parent.text or "") + child


def table(head: Iterable[Child], body: Iterable[Element], caption: str, class_: str | None = None) -> Element:
    """A table in a scrolling frame, with a caption and column headings."""
    columns = element("tr", *(element("th", cell, scope="col") for cell in head))
    parts = element("caption", element("span", caption)), element("thead", columns), element("tbody", *body)
    made = element("table", *parts, class_=class_)
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def row(heading: Child, *cells: Child, class_: str | None = None) -> Element:
    """A table row whose first cell is its heading."""
    data = (element("td", cell) for cell in cells)
    return element("tr", element("th", heading, scope="row"), *data, class_=class_)


def text_of(*parts: Element) -> str:
    """The parts as HTML source."""
    return "\n".join(ElementTree.tostring(part, encoding="unicode", method="html") for part in parts)


def embedded_json(value: Any) -> str:
    """JSON for use inside a script element; nothing in it can end the element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def page(title: str, notices: Iterable[Notice], main: Iterable[Element], scripts: str = "") -> str:
    """HTML of a page.

    Args:
        notices: banners above everything.
        scripts: script elements that follow the content.
    """
    banners = element("div", *map(_banner, notices), class_="banners")
    return Template(asset("page.html")).substitute(
        title=text_of(element("title", f"{title}: OpJoule")),
        style=page_style(),
        banners=text_of(banners),
        main=text_of(*main),
        scripts=scripts,
    )


def page_style() -> str:
    """Style sheet of every page, with that of its drawings."""
    return library_style() + asset("page.css")


def header(title: str, kicker: str, *children: Child) -> Element:
    """Title and what the page is; text among the children is in small type."""
    lines = (element("p", child, class_="workload") if isinstance(child, str) else child for child in children)
    return element("header", element("p", kicker, class_="kicker"), element("h1", title), *lines)


def section(name: str, heading: str, *children: Child) -> Element:
    """A part of a page with its heading, which names the part for screen readers."""
    title = element("h2", heading, id=f"h-{name}")
    return element("section", title, *children, aria_labelledby=f"h-{name}")


def _banner(notice: Notice) -> Element:
    look = "warning" if notice.kind.grade is Grade.NOTE else "grave"
    look = "simulated" if notice.kind is NoticeKind.SIMULATED else look
    words = element("strong", notice.title), element("p", notice.sentence)
    return element("div", *words, class_=f"banner {look}", role="note")


def library_style() -> str:
    """Style sheet of every drawing, with the colours of light and dark pages."""
    return text_file("vendor/uPlot.min.css") + asset("drawing.css")


def asset(name: str) -> str:
    """A file of assets/."""
    return text_file(f"assets/{name}")


def text_file(name: str) -> str:
    """A file below this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


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
