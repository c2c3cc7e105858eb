"""The figure of a study's phases: what is drawn is what its rows say, once for each place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compared_records import phase_run, study_table
from matplotlib.backends.backend_agg import FigureCanvasAgg
from opjoule.base.units import exact
from opjoule.pages.drawing.printed import SIMULATED, printed
from opjoule.pages.plots.phases import joules, seconds, study_figures
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.study_best import best_csv, best_systems, best_tables, too_short
from opjoule.results.comparison.study_rows import StudyTable

PHASES = ("LOAD", "READ", "COUNT")


def row(system: str, phase: str, rows: str = "100", **measures: float) -> ComparedRun:
    refused = "has none" if not measures else ""
    cell = {"system": system, "rows": rows}
    known = {name: exact(value, "") for name, value in measures.items()}
    return phase_run(cell, phase, 1, known, operations=500, not_supported=refused)


def study(*rows: ComparedRun, **shown: object) -> StudyTable:
    return study_table(**{"best": {"mean_s": "least"}, "phases": PHASES, "rows": rows, **shown})


ROWS = (
    row(
        "one",
        "LOAD",
        mean_s=0.5,
        calls=100,
        energy_per_operation_j=0.02,
        marginal_energy_per_operation_j=0.01,
    ),
    row("two", "LOAD", mean_s=5.0, calls=100, energy_per_operation_j=0.3, marginal_energy_per_operation_j=-0.1),
    row("one", "READ", duration_s=0.25, energy_j=1.5),
    row("two", "READ"),
    row("one", "COUNT", mean_s=1e-5, calls=1),
    row("one", "LOAD", "1000", mean_s=7.0, calls=1000, energy_per_operation_j=0.02),
)


def test_seconds_and_joules_are_of_one_run_of_a_phase():
    assert [seconds([ROWS[at]])[0] for at in (0, 2, 3)] == [0.5, 0.25, None]
    assert seconds([ROWS[0], ROWS[1]])[0] == pytest.approx(2.75)
    assert joules([ROWS[0]], "energy_j")[0] == pytest.approx(2.0)
    assert joules([ROWS[0]], "marginal_energy_j")[0] == pytest.approx(1.0)
    assert joules([ROWS[2]], "energy_j")[0] == 1.5 and joules([ROWS[4]], "energy_j") == (None, None)


def test_each_place_has_its_figure_with_bars_by_phase_and_system():
    figures = dict(study_figures(study(*ROWS)))
    assert list(figures) == ["s9-rows-100-phases", "s9-rows-1000-phases"]
    figure = printed(figures["s9-rows-100-phases"]())
    FigureCanvasAgg(figure).draw()
    above, below = figure.axes
    assert above.get_yscale() == below.get_yscale() == "log"
    heights = {round(bar.get_x() + bar.get_width() / 2, 3): bar.get_height() for bar in above.patches}
    assert sorted(heights.values()) == [1e-5, 0.25, 0.5, 5.0]
    assert [height for _, height in sorted(heights.items())] == [0.5, 5.0, 0.25, 1e-5]
    assert sorted(bar.get_height() for bar in below.patches) == pytest.approx([1.5, 2.0, 30.0])
    assert [line.get_ydata()[0] for line in below.lines] == pytest.approx([1.0]), "no point where it is not above 0"
    assert [text.get_text() for text in below.get_xticklabels()] == list(PHASES)
    said = [[text.get_text() for text in axes.texts] for axes in (above, below)]
    assert said[0].count("n/s") == said[1].count("n/s") == 1
    assert len(said[0]) == 2 and len(said[1]) == 3, "READ of two; COUNT of two, and of one its joules"
    (legend,) = figure.legends
    assert legend.get_title().get_text() == SIMULATED
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two", "above idle"]


def test_bars_within_a_factor_of_ten_begin_at_zero():
    near = [row(name, "LOAD", mean_s=s, energy_j=j) for name, s, j in (("one", 1.0, 1.0), ("two", 9.0, 30.0))]
    ((_, draw),) = study_figures(study(*near))
    above, below = printed(draw()).axes
    assert (above.get_yscale(), below.get_yscale()) == ("linear", "log")
    assert above.get_ylim()[0] == 0.0


def test_a_papers_figure_of_one_phase_shows_its_bars_alone():
    ((_, draw),) = study_figures(study(*ROWS).with_phases(["READ"]))
    above, below = printed(draw()).axes
    assert [bar.get_height() for bar in above.patches] == [0.25]
    assert [text.get_text() for text in below.get_xticklabels()] == ["READ"]
    assert study(*ROWS).with_phases([]) == study(*ROWS)


def test_the_best_of_many_phases_stand_below_each_other():
    (table,) = best_tables(study(*ROWS))
    assert [column.header for column in table.columns] == ["", "100", "1000"]
    assert list(table.columns[0].cells) == ["LOAD", "COUNT"]
    assert [next(iter(column.cells)).split()[0] for column in table.columns[1:]] == ["one", "one"]


def test_no_best_is_named_of_a_phase_that_is_no_contest():
    rows = (row("one", "LOAD", mean_s=0.1), row("one", "READ", mean_s=0.1))
    named = best_systems(study(*rows, unranked=("READ",)))
    assert [best.phase for best in named] == ["LOAD"]


def test_quicker_systems_without_joules_are_named_beside_the_best_of_the_others():
    slow = [row(name, "READ", energy_j=joule, mean_s=0.2) for name, joule in (("one", 3.0), ("two", 2.0))]
    quick = [
        replace(row(name, "READ", mean_s=0.001), short_s=short_s)
        for name, short_s in (("three", 0.002), ("four", 0.001))
    ]
    made = study(*slow, *quick, best={"energy_j": "least", "mean_s": "least"})
    of_energy, of_time = best_systems(made)
    assert (of_energy.system, of_energy.too_short) == ("two", (("four", 0.001), ("three", 0.002)))
    assert of_time.mean.value == 0.001 and not of_time.too_short
    energy, _ = best_tables(made)
    assert list(energy.columns[1].cells) == ["(two 2.000\N{NO-BREAK SPACE}J [1 run])"]
    (line,) = too_short(made)
    assert line.startswith("READ ") and "four 1.0 ms, three 2.0 ms." in line.replace("\N{NO-BREAK SPACE}", " ")
    assert "four 0.001; three 0.002" in best_csv(made)
    assert not too_short(study(*slow))


def test_a_system_that_tells_no_answer_where_others_do_is_not_the_best():
    quick, slow = row("one", "LOAD", mean_s=0.1), row("two", "LOAD", mean_s=0.9)
    assert [best.system for best in best_systems(study(quick, slow))] == ["one"]
    assert [best.system for best in best_systems(study(quick, replace(slow, answer=3)))] == ["two"]


def test_a_study_of_operations_that_have_a_name_is_drawn_per_operation():
    measures = {"energy_per_operation_j": 0.02, "marginal_energy_per_operation_j": 0.01}
    rows = (row("one", "LOAD", per_row_us=40.0, calls=100, mean_s=9.0, **measures), row("two", "LOAD"))
    ((_, draw),) = study_figures(study(*rows, per="row"))
    figure = printed(draw())
    above, below = figure.axes
    assert above.get_ylabel() == "time per row [µs]" and "energy per row [J]" in below.get_ylabel()
    assert [bar.get_height() for bar in above.patches] == [40.0]
    assert [bar.get_height() for bar in below.patches] == [0.02]
    assert [line.get_ydata()[0] for line in below.lines] == [0.01]


def test_the_best_system_is_stated_in_the_measures_unit():
    rows = (row("one", "LOAD", per_row_us=40.0), row("two", "LOAD", per_row_us=50.0))
    table = study(*rows, best={"per_row_us": "least"})
    assert [(best.phase, best.system) for best in best_systems(table)] == [("LOAD", "one")]
    (shown,) = best_tables(table)
    assert list(shown.columns[1].cells) == ["one 40.00\N{NO-BREAK SPACE}µs [1 run]"]
