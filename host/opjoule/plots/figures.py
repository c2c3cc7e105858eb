"""All figures of some records, with their tables and methods, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from opjoule.errors import BadInput
from opjoule.files import write_whole
from opjoule.plots.bars import Drawn, bars
from opjoule.plots.cells import Plotted, plotted
from opjoule.plots.planes import energy_and_delay, energy_and_throughput
from opjoule.plots.stack import activity_bars
from opjoule.plots.style import drawn, save
from opjoule.plots.tables import csv_table, latex_table, methods

FIGURES: Final[dict[str, Callable[[Plotted], Figure]]] = {
    "bandwidth-latency": lambda of: bars(
        of,
        Drawn("bandwidth_bytes_per_s", "bandwidth", "B/s"),
        [Drawn("latency_s.mean", "mean latency", "s")],
        "mean latency",
    ),
    "energy-power": lambda of: bars(
        of, Drawn("energy_j", "energy", "J"), [Drawn("power_w", "power", "W")], "power"
    ),
    "cpu-io": lambda of: bars(
        of,
        Drawn("cpu_fraction", "processor use", "1"),
        [Drawn("disk_written_bytes", "disk written", "B"), Drawn("disk_read_bytes", "disk read", "B")],
        "disk",
    ),
    "energy-delay": energy_and_delay,
    "energy-throughput": energy_and_throughput,
    "energy-by-activity": activity_bars,
}
"""Name of the files -> the figure."""


def write_figures(places: Sequence[Path], folder: Path) -> Iterator[str]:
    """Draws every figure of the runs in or below some places.

    Returns: a line for each thing written, and for each record that was left out.
    Raises: BadInput: no run with a result, or simulated ones with real ones.
    """
    found = plotted(places)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--out {folder} is a file: name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        made = save(drawn(partial(draw, found)), folder, name)
        yield f"{made[0].with_suffix('')}: {', '.join(path.suffix[1:] for path in made)}"
    for name, text in (
        ("table.csv", csv_table(found)),
        ("table.tex", latex_table(found)),
        ("methods.txt", methods(found)),
    ):
        write_whole(folder / name, text.encode())
        yield str(folder / name)
    for line in found.left_out:
        yield f"left out: {line}"
