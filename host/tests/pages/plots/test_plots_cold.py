"""The figures of cold and repeated phases, and of bulk measures: what is drawn is what a study's rows say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compared_records import phase_run, study_table
from matplotlib.backends.backend_agg import FigureCanvasAgg
from opjoule.base.units import Quantity
from opjoule.pages.drawing.printed import SIMULATED, printed
from opjoule.pages.plots.phases import cold_figures
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.rounding import NONE

TIMES = "\N{MULTIPLICATION SIGN}"


def row(system: str, phase: str, refused: str = "", **measures: float) -> ComparedRun:
    known = {
        name: Quantity(value, 0.1 * value if name.startswith("energy") else 0.0, "") for name, value in measures.items()
    }
    return phase_run({"system": system}, phase, 1, known, not_supported=refused)


ROWS = (
    row("two", "ASK_COLD", mean_s=4.0, energy_per_operation_j=0.06, marginal_energy_j=0.5, calls=100),
    row(
        "two",
        "ASK",
        mean_s=2.0,
        energy_per_operation_j=0.015,
        marginal_energy_per_operation_j=1e-3,
        calls=100,
    ),
    row("one", "ASK_COLD", refused="keeps nothing"),
    row("one", "ASK", mean_s=8.0, energy_j=7.0),
    row("two", "PUT", points_per_s=5e4, stored_bytes=3e6, energy_j=2.0, marginal_energy_j=0.5),
    row("one", "PUT", points_per_s=1e5, energy_j=1.0),
)
PHASES = ("PUT", "ASK_COLD", "ASK")
STUDY = study_table(
    {}, ROWS, phases=PHASES, cold={"ASK": "ASK_COLD"}, bars={"points_per_s": "PUT", "stored_bytes": "PUT"}
)


def figure_of(name: str):
    figure = printed(dict(cold_figures(STUDY))[name]())
    FigureCanvasAgg(figure).draw()
    return figure


def heights(axes) -> list[float]:
    ordered = sorted(axes.patches, key=lambda bar: bar.get_x())
    return [bar.get_height() for bar in ordered]


def test_cold_stands_beside_repeated_with_the_ratio_of_both_in_seconds_and_joules():
    figure = figure_of("s9-cold")
    above, below = figure.axes
    assert heights(above) == [8.0, 4.0, 2.0], "one: repeated alone; two: cold and repeated"
    assert heights(below) == pytest.approx([7.0, 6.0, 1.5]), "of one call of a phase"
    opacity = [bar.get_alpha() for bar in sorted(above.patches, key=lambda bar: bar.get_x())]
    assert opacity[1] == 1.0 and opacity[0] == opacity[2] < 1.0
    assert [text.get_text() for text in above.texts] == ["n/s", f"{TIMES}2.00"]
    assert [text.get_text() for text in below.texts] == ["n/s", f"{TIMES}4.00"]
    ends = [line.get_segments()[0][:, 1] for line in below.collections]
    assert sorted(float(end[1] - end[0]) for end in ends) == pytest.approx([0.3, 1.2, 1.4]), "k = 2, both ways"
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["one", "two", "left: cold", "right: repeated", "above idle"]
    assert figure.legends[0].get_title().get_text() == SIMULATED
    centre = [bar.get_x() + bar.get_width() / 2 for bar in above.patches]
    assert min(centre) > -0.5 and max(centre) < 0.5, "around the phase's name"


def test_bulk_measures_have_a_panel_each_with_their_joules_and_values():
    figure = figure_of("s9-bulk")
    assert [axes.get_title() for axes in figure.axes] == [
        "PUT: points per s",
        "PUT: stored bytes",
        "PUT: energy",
    ]
    rate, size, energy = figure.axes
    assert heights(rate) == [1e5, 5e4] and heights(size) == [3e6] and heights(energy) == [1.0, 2.0]
    words = [[text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in axes.texts] for axes in figure.axes]
    assert words == [["100,000", "50,000"], [NONE, "3.00 MB"], ["1.00 ± 0.10 J", "2.00 ± 0.20 J"]]
    assert all(axes.get_ylim()[0] == 0 and axes.get_yscale() == "linear" for axes in figure.axes)


def test_a_study_that_names_neither_has_no_such_figure():
    assert not list(cold_figures(study_table({}, ROWS, phases=PHASES)))
    assert [name for name, _ in cold_figures(replace(STUDY, rows=ROWS[4:]))] == ["s9-bulk"]
