"""What a browser needs for drawings: the style of all of them, and the script of the time chart (assets/, vendor/)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_SCRIPTS: Final = ("packing", "pyramid", "series", "marks", "panels", "readout", "touch", "chart")
_PUBLIC: Final = (
    "TimeChart, Pyramid, phaseButtons, shortestCell, unpackedTrack, unpackedTimes, indexAt, colour"
)


def library_style() -> str:
    """Style sheet of every drawing, with the colours of light and dark pages."""
    return _text("vendor/uPlot.min.css") + _text("assets/drawing.css")


def library_script() -> str:
    """Script that makes one name, `drawing`, whose `TimeChart` draws (assets/chart.js says how it is called)."""
    parts = "\n".join(_text(f"assets/{name}.js") for name in _SCRIPTS)
    made = f'const drawing = (() => {{\n"use strict";\n{parts}\nreturn {{ {_PUBLIC} }};\n}})();'
    return f"{_text('vendor/uPlot.iife.min.js')}\n{made}"


def page_script() -> str:
    """Script that starts the chart of a page which holds its own data."""
    return f"{library_script()}\n{_text('assets/page.js')}"


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
