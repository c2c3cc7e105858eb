"""A campaign's conclusions against the simulator's truth: a false one, or one the wrong way round, is reported."""

from pathlib import Path

import pytest
from campaign_truth import tell_ratios, tell_records
from opjoule.results.comparison.index import gather
from simulated_records import KEY, synthetic


def verdict(folder: Path, capsys, stated: dict[str, tuple[float, ...]]) -> tuple[bool, str]:
    """LevelDB truly takes 0.02 J an operation, SQLite 0.01 J."""
    for db, true_j in (("leveldb", 0.02), ("sqlite", 0.01)):
        for block, value in enumerate(stated[db], 1):
            synthetic(folder / f"{db}-{block}", db, true_j, value, 1e-3 * value, block)
    fine = tell_ratios(gather([str(folder)])[0], "db", KEY)
    return fine, capsys.readouterr().out


@pytest.mark.parametrize(
    ("leveldb", "sqlite", "fine", "says"),
    [
        ((0.020001, 0.019999), (0.010001, 0.009999), True, "block, 2 hold"),
        ((0.0201, 0.0199), (0.01, 0.01), False, "block, 0 hold"),
        ((0.0301, 0.0299), (0.01001, 0.00999), False, "| 2 | **does not hold** | leveldb more |"),
        (
            (0.00501, 0.00499),
            (0.01001, 0.00999),
            False,
            "found: 1, 1 of them",
        ),
    ],
)
def test_a_ratio_is_held_against_the_simulators(tmp_path, capsys, leveldb, sqlite, fine, says):
    holds, text = verdict(tmp_path, capsys, {"leveldb": leveldb, "sqlite": sqlite})
    assert holds is fine
    assert says in text
    assert "SIMULATED" in text


def test_every_record_is_held_against_its_own_truth(tmp_path, capsys):
    synthetic(tmp_path / "right", "sqlite", 0.01, 0.0102, 3e-4)
    synthetic(tmp_path / "wrong", "sqlite", 0.01, 0.0104, 3e-4)
    tell_records(gather([str(tmp_path)])[0])
    assert "| marginal energy of an operation | 1 of 2 | 3 |" in capsys.readouterr().out
