"""Plots of the cells of a comparison, for pages and for print: each module has its own in `PLOTS`."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from opjoule.pages.drawing.drawing import Drawing
from opjoule.results.comparison.cell import Plotted


@dataclass(frozen=True)
class Plot:
    """A plot of the cells of a comparison."""

    name: str
    """Name of its files."""
    draw: Callable[[Plotted], Drawing | None]
    """Makes the drawing; None if the runs lack what it shows."""
    lacking: str
    """What they lack then."""
    heading: str = ""
    """Heading of its section in a page; empty: the plot is only for print."""
    of_study: Callable[[Plotted], Drawing | None] | None = None
    """Makes the drawing of a figure of a study; None: no such figure has it."""


def plots() -> list[Plot]:
    """The plots of every module of this folder."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return [plot for name in names for plot in import_module(f"{__name__}.{name}").PLOTS]
