"""Rows of a study: the energies of its phases, and the errors that they share with other rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compared_records import phase_run, study_table
from opjoule.base.units import Quantity
from opjoule.energy.comparison import differ, ratio
from opjoule.results.comparison.study_best import best_systems, not_supported
from opjoule.results.comparison.study_rows import read_studies
from report_record import put_result
from study_records import study_record

GAIN = "bench: shunt"


def test_a_phase_has_the_shared_errors_of_its_stretches_together(tmp_path: Path) -> None:
    record = study_record(tmp_path / "record", "bench")
    shared = json.loads((record.directory / "result.json").read_text())["shared"]
    [row] = read_studies([record.directory])[0].rows
    for measure, path, parts in (
        ("energy_j", "energy_j", 1),
        ("marginal_energy_j", "marginal_energy_j", 1),
        ("energy_per_operation_j", "energy_j", 100),
        ("phase_energy_j", "energy_j", 10),
    ):
        side = row.means[measure]
        assert side.shared[GAIN] == pytest.approx(side.value * 0.01 / 3**0.5, rel=1e-3)
        assert side.shared[GAIN] == pytest.approx(shared[f"by_phase.query.{path}"][GAIN] / parts)
        assert 0 <= side.own_u < side.standard_u


def test_a_sensor_without_a_name_shares_nothing(tmp_path: Path) -> None:
    record = study_record(tmp_path / "record", "")
    [row] = read_studies([record.directory])[0].rows
    assert row.means["energy_j"].u > 0 and row.means["energy_j"].shared == {}


def test_a_phase_that_was_mostly_lost_says_why_it_has_no_joules(tmp_path: Path) -> None:
    record = study_record(tmp_path / "record", "bench", lost_s=(1.42, 1.48))
    [study] = read_studies([record.directory])
    [row] = study.rows
    assert "energy_j" not in row.means and row.means["duration_s"].value == pytest.approx(0.4)
    assert row.why.startswith("not integrated (repeat 1: 30.0 % of window")
    assert not_supported(study) == [f"without joules: 1 phases {row.why}"]


def test_a_phase_whose_samples_were_clipped_has_no_exact_joules(tmp_path: Path) -> None:
    record = study_record(tmp_path / "record", "bench")
    result = json.loads((record.directory / "result.json").read_text())
    least = {"value": 4.0, "u": None, "unit": "J", "reason": "at least this: 3 samples", "cause": "at least this"}
    result["by_phase"]["query"]["energy_j"] = least
    put_result(record.directory, result)
    [row] = read_studies([record.directory])[0].rows
    assert row.means["energy_j"].u is None and row.means["energy_j"].is_least


def test_five_per_cent_are_a_difference_although_the_gain_of_their_sensor_is_less_well_known() -> None:
    """The gain has a standard uncertainty of 4.3 % and is the same for all rows."""
    rows = []
    for system, mean in (("one", 1.0), ("two", 1.05)):
        for block, value in enumerate((mean, 1.002 * mean, 0.998 * mean)):
            energy = Quantity(value, 0.086 * value, "J", shared={GAIN: 0.043 * value})
            rows.append(phase_run({"system": system}, "LOAD", block, {"energy_j": energy}))
    one, two = (Quantity.mean([row.means["energy_j"] for row in rows if row.system == name]) for name in ("one", "two"))
    assert differ(one, two) and ratio(two, one).u < 0.01
    [best] = best_systems(study_table({"energy_j": "least"}, rows))
    assert best.system == "one" and best.differs
