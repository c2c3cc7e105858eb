"""The best system of a study's cell: single runs name no winner, and the spread of runs counts."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from compared_records import phase_run, study_table
from opjoule.base.units import Quantity, exact, unstated
from opjoule.pages.plots.phases import joules
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.study_best import (
    best_csv,
    best_systems,
    best_tables,
    how_sure,
    mean_of,
    value_words,
)
from opjoule.results.comparison.study_rows import StudyTable
from opjoule.results.comparison.value_words import measure_words

KEY = "energy_per_operation_j"


def row(system: str, block: int, value: float, u: float = 0.01, k: float = 2.0) -> ComparedRun:
    return phase_run({"system": system}, "LOAD", block, {KEY: Quantity(value, u, "J", k)})


def study(*rows: ComparedRun) -> StudyTable:
    return study_table({KEY: "least"}, rows)


def cell_of(made: StudyTable) -> str:
    (table,) = best_tables(made)
    return str(next(iter(table.columns[1].cells))).replace("\N{NO-BREAK SPACE}", " ")


def test_a_single_run_of_each_names_no_winner_however_far_apart_they_are() -> None:
    made = study(row("one", 1, 1.0), row("two", 1, 9.0))
    (best,) = best_systems(made)
    assert best.single and best.differs is None
    (table,) = best_tables(made)
    assert "no winner" in str(table.title) and "SIMULATED" in str(table.title)
    assert cell_of(made).endswith("[1 run]") and "[1 run]: the lowest" in how_sure(made)[0]
    assert "single run" in best_csv(made)


def test_several_runs_that_differ_by_more_than_runs_do_name_a_winner() -> None:
    made = study(*(row(name, at, value) for name, mean in (("one", 1.0), ("two", 2.0)) for at, value in
                   enumerate((mean, 1.02 * mean, 0.98 * mean))))  # fmt: skip
    (best,) = best_systems(made)
    assert (best.system, best.differs, best.single) == ("one", True, False)
    assert cell_of(made).startswith("one 1.000 ± 0.0") and not how_sure(made)


def test_the_spread_of_runs_counts_and_not_only_what_each_states() -> None:
    """Each states 1 %, and they differ by 50 %."""
    made = study(*(row(name, at, value) for name, mean in (("one", 1.0), ("two", 1.2)) for at, value in
                   enumerate((mean, 1.5 * mean, 0.6 * mean))))  # fmt: skip
    (best,) = best_systems(made)
    assert best.differs is False and best.mean.u is not None and best.mean.u > 0.5
    assert cell_of(made).startswith("~one") and [line[:2] for line in how_sure(made)] == ["~:"]


def test_the_figure_has_the_interval_of_the_table() -> None:
    rows = [row("one", at, value) for at, value in enumerate((1.0, 1.5, 0.6))]
    rows = [replace(sample, means={"energy_j": sample.means[KEY]}) for sample in rows]
    mean = mean_of([sample.means["energy_j"] for sample in rows])
    assert joules(rows, "energy_j") == (pytest.approx(mean.value), mean.u)


def test_a_bound_of_each_run_enters_with_its_own_coverage_factor() -> None:
    """Two standard uncertainties of 0.010, a bound (k = 1.653) and the spread of the runs, have k = 1.968 together."""
    rows = [row("one", at, value, 0.01653, 1.653) for at, value in enumerate((1.0, 1.0076, 0.9924))]
    (best,) = best_systems(study(*rows))
    assert best.mean.u == pytest.approx(1.968 * 0.01 * 2**0.5, rel=0.01)


def test_no_key_is_printed() -> None:
    (table,) = best_tables(study(row("one", 1, 1.0), row("two", 1, 9.0)))
    assert KEY not in str(table.title) and "_" not in str(table.title)


def test_a_time_has_the_spread_of_its_records_and_of_one_none() -> None:
    alone, mean = mean_of([exact(1.0, "s")]), mean_of([exact(1.0, "s"), exact(1.2, "s")])
    assert (alone.value, alone.u) == (1.0, None)
    assert mean.value == pytest.approx(1.1) and mean.u == pytest.approx(13.97 * 0.1)


@pytest.mark.parametrize(
    ("measure", "value", "words", "shown"),
    [
        ("bandwidth_bytes_per_s", 39.04e6, "bandwidth", "39.04 MB/s"),
        ("points_per_s", 12_000.0, "points per s", "12,000 /s"),
        ("mean_s", 0.012, "mean time", "12.00 ms"),
        ("per_row_us", 3.25, "time per row", "3.250 µs"),
    ],
)
def test_a_measure_has_the_unit_that_its_name_ends_in_a_rate_among_them(measure, value, words, shown):
    assert measure_words(measure) == words
    assert unicodedata.normalize(
        "NFKC", value_words(unstated(value, "", "reported"), measure)
    ) == unicodedata.normalize("NFKC", shown)


def test_a_system_that_is_only_noisier_is_not_the_best_as_in_a_comparison() -> None:
    """`noisy` has the least mean and differs from none; `one` is better than `two`."""
    means = {"noisy": (0.1, 1.9, 0.7), "one": (1.0, 1.01, 0.99), "two": (2.0, 2.02, 1.98)}
    made = study(*(row(name, at, value) for name, values in means.items() for at, value in enumerate(values)))
    (best,) = best_systems(made)
    assert (best.system, best.differs, best.single) == ("one", False, False)
    assert cell_of(made).startswith("~one 1.000")
