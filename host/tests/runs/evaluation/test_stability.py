"""Notices of unsteady runs: what each rule finds, and how often it speaks of repeats that differ only by chance."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import missing
from opjoule.energy.operations.board_files import COLUMNS, COMPUTER, ComputerLoad
from opjoule.energy.repeats import chi_square_probability
from opjoule.results.comparison.compared_run import read_compared
from opjoule.results.comparison.run_warnings import warnings_of
from opjoule.results.run_list import listed
from opjoule.runs.evaluation.collection import collect
from opjoule.runs.evaluation.evidence import Evidence
from opjoule.runs.evaluation.stability import (
    ALPHA,
    Repeated,
    busy_notices,
    bytes_notices,
    repeat_notices,
    stability_notices,
)
from opjoule.runs.record.run_record import RunRecord
from raw_record import running_record
from usual_phases import usual_phase

SECOND = 1_000_000_000
SEEN = (0.02, 0.04, 0.06)
"""Relative scatter between repeats of runs on a quiet computer."""
TRIALS = 2000
SLACK = 3.0 * np.sqrt(ALPHA / TRIALS)
"""Three standard errors of a share of ALPHA."""


def said(values, own=0.01):
    """The line on repeats with these values; empty without one."""
    lines = repeat_notices(Repeated("energy above idle per operation", values, [own * value for value in values]))
    assert all(notice.kind is NoticeKind.UNSTEADY for notice in lines)
    return "; ".join(notice.text for notice in lines)


def test_repeats_that_scatter_by_a_sixth_are_named_with_their_distances_from_the_mean():
    """54.7, 64.3 and 75.5 uJ were once stated without a word."""
    assert "\N{MINUS SIGN}16, \N{MINUS SIGN}1, +16 %" in said([54.7, 64.3, 75.5])
    assert not said([54.7, 64.3, 75.5], own=0.2), "their own uncertainties explain it"
    assert not said([57.0, 60.0, 63.0]), "no more than repeats usually scatter"


def test_a_trend_is_named_with_its_size():
    line = said([50.0, 52.1, 53.9, 56.2, 58.0], own=0.002)
    assert "rose by 15 %" in line
    assert "fell by 15 %" in said([58.0, 56.2, 53.9, 52.1, 50.0], own=0.002)
    assert not said([50.0, 52.1, 53.9, 56.2, 58.0], own=0.05), "their own uncertainties explain it"
    assert not said([50.0, 50.2, 50.4, 50.6, 50.8]), "a trend that does not matter"


def test_an_outlier_is_named_by_its_number_and_distance():
    line = said([50.0, 50.6, 49.7, 66.0, 50.2])
    assert "repeat 4 is 32 % above" in line
    assert "30 % below" in said([50.0, 50.6, 49.7, 35.0, 50.2])
    assert not said([50.0, 50.1, 49.9, 51.0, 50.0]), "an outlier that does not matter"


def test_two_levels_are_named_with_their_repeats():
    line = said([50.0, 61.0, 50.4, 60.7, 49.8, 61.2, 50.1, 60.9])
    high, low = line.index("repeats 2, 4, 6, 8"), line.index("repeats 1, 3, 5, 7")
    assert "20 %" in line[high:low]
    assert not said([50.0, 50.9, 50.1, 51.0, 50.0, 51.1, 50.1, 50.9]), "levels whose distance does not matter"


def test_nothing_is_said_of_one_repeat_of_equal_ones_and_of_energies_around_zero():
    assert not said([50.0]) and not said([50.0] * 8) and not said([-1.0, 1.0, 0.0])


@pytest.mark.parametrize("repeats", [3, 5, 8, 20])
@pytest.mark.parametrize("scatter", SEEN)
def test_repeats_that_differ_only_by_chance_are_seldom_named(repeats, scatter):
    """At most ALPHA for each of the three tests of a course; the spread of three repeats adds what exceeds 10 %."""
    drawn = np.random.default_rng(repeats).normal(1.0, scatter, (TRIALS, repeats))
    named = [said(values) for values in drawn.tolist()]
    by_spread = np.mean(["own uncertainties" in line for line in named])
    by_course = {
        word: np.mean([word in line for line in named]) for word in ("first repeat", "of repeat", "two levels")
    }
    assert all(share <= ALPHA + SLACK for share in by_course.values()), by_course
    most = chi_square_probability((repeats - 1) * (0.1 / scatter) ** 2, repeats - 1)
    assert by_spread <= most + 3.0 * np.sqrt(most / TRIALS) + 1e-3


def test_repeats_that_differ_as_their_own_uncertainties_say_are_seldom_named():
    drawn = np.random.default_rng(3).normal(1.0, 0.15, (TRIALS, 3))
    named = [bool(repeat_notices(Repeated("energy", values, [0.15] * 3))) for values in drawn.tolist()]
    assert 0.0 < np.mean(named) <= ALPHA + SLACK


@pytest.mark.parametrize("lumps", [5, 30, 300])
def test_lumps_that_come_by_chance_are_seldom_named_unequal(lumps):
    rng = np.random.default_rng(lumps)
    named = []
    for _ in range(TRIALS):
        sizes = [rng.exponential(1e6, rng.poisson(lumps)) for _ in range(3)]
        every = np.concatenate(sizes)
        named += [bytes_notices([float(of.sum()) for of in sizes], float((every**2).sum() / max(every.sum(), 1.0)))]
    assert np.mean([bool(lines) for lines in named]) <= ALPHA + SLACK


def test_unequal_writes_are_named_in_the_order_of_the_repeats():
    [unsteady] = bytes_notices([27e6, 120e6, 257e6], 1e6)
    assert unsteady.kind is NoticeKind.UNSTEADY and "27, 120, 257 MB" in unsteady.line
    assert not bytes_notices([27e6, 120e6, 257e6], 100e6), "a few large lumps"
    assert not bytes_notices([100e6, 110e6, 90e6], 1e6) and not bytes_notices([0.0, 0.0], 1e6)


LOAD = ComputerLoad(
    np.arange(41) * SECOND,
    np.full(41, 2.0),
    np.arange(41) * 1.5 + np.clip(np.arange(41) - 20, 0, 10) * 0.4,
    np.arange(41) * 1.46,
)
"""The rig takes 1.46 of two processors, other programs 0.04, and from 20 s to 30 s 0.44."""


def test_a_busy_computer_is_named_with_the_share_of_each_repeat():
    runs = [usual_phase("run", 1, 5 * SECOND, 15 * SECOND), usual_phase("run", 2, 20 * SECOND, 30 * SECOND)]
    [busy] = busy_notices(LOAD, runs)
    assert busy.kind is NoticeKind.BUSY and "2, 22 %" in busy.line and "repeats 1 to 2." in busy.line
    assert busy_notices(LOAD, runs[:1]) == [], "the rig's own programs do not count"
    assert busy_notices(None, runs) == []


def test_the_share_is_that_of_the_time_that_was_sampled():
    assert LOAD.others_share(20 * SECOND, 30 * SECOND) == pytest.approx(0.22)
    assert LOAD.others_share(35 * SECOND, 90 * SECOND) == pytest.approx(0.02)
    assert LOAD.others_share(50 * SECOND, 90 * SECOND) == 0.0


def test_repeats_without_samples_or_headline_have_no_notice():
    repeat = SimpleNamespace(samples=None, energy=SimpleNamespace(marginal=None))
    repeat.samples = missing("no system samples")
    headline = SimpleNamespace(key="marginal_energy_j", label="energy above idle")
    assert stability_notices(headline, [repeat], [{"marginal_energy_j": missing("no idle", "J")}]) == []


def wrote(path, step_bytes):
    """Changes a file of system samples: the medium wrote this much from each sample to the next."""
    head, *rows = [line.split(",") for line in path.read_text().splitlines()]
    at = head.index("device_written_bytes")
    for number, row in enumerate(rows):
        row[at] = str(number * step_bytes)
    path.write_text("".join(",".join(row) + "\n" for row in [head, *rows]))


def test_the_result_the_list_and_a_comparison_have_the_notices_and_the_measurements_own(tmp_path):
    record = running_record(tmp_path)
    record.add_notices(Notice(NoticeKind.NOTE, "a slow disk"))
    for repeat in (1, 2):
        wrote(tmp_path / f"raw/repeat-{repeat}.system.csv", 100_000 if repeat == 1 else 2_000_000)
    start_ns = record.run.phases[0].start_board_ns
    samples = [f"{start_ns + second * SECOND},2,{1.9 * second:.2f},{1.2 * second:.2f}\n" for second in range(9)]
    (tmp_path / "raw" / COMPUTER).write_text(",".join(COLUMNS) + "\n" + "".join(samples))
    collect(record, Evidence.of(record, ended_early=False))
    disk, busy, unsteady = json.loads((tmp_path / "result.json").read_text())["notices"]
    assert disk["line"] == "a slow disk" and record.run.status == "complete"
    assert "35, 35 %" in busy["line"] and " wrote " in unsteady["line"]
    kinds = [NoticeKind.NOTE, NoticeKind.BUSY, NoticeKind.UNSTEADY]
    assert [notice.kind for notice in listed(tmp_path).notices] == kinds
    assert {notice.kind for notice in warnings_of([[read_compared(RunRecord.open(tmp_path))]])} == set(kinds)


def test_a_damaged_file_of_the_computers_load_is_a_fault_and_costs_no_figure(tmp_path):
    record = running_record(tmp_path)
    (tmp_path / "raw" / COMPUTER).write_text("nothing\n")
    collect(record, Evidence.of(record, ended_early=False))
    assert any(COMPUTER in fault.text for fault in record.faults)
    assert json.loads((tmp_path / "result.json").read_text())["marginal_energy_j"]["u"] > 0.0
