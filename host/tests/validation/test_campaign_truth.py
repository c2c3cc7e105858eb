"""A campaign's conclusions against the simulator's truth: a false one, or one the wrong way round, is reported."""

import json
from pathlib import Path

import pytest
from campaign_truth import tell_ratios, tell_records
from opjoule.comparison.index import gather
from opjoule.record.run_record import RunRecord
from opjoule.simulation.supply import COURSE
from usual_phases import usual_phase

KEY = "marginal_energy_per_operation_j"
IDLE_W, OPERATIONS = 3.0, 100
EDGES_S = {"idle-before": (0, 3), "run": (3, 5), "settle": (5, 6), "idle-after": (6, 9)}


def record(place: Path, db: str, true_j: float, stated_j: float, u: float, block: int = 1) -> None:
    """A SYNTHETIC record of a run whose operations took `true_j` above idle each, and that states something else."""
    made = RunRecord.create(
        place, {"db": db, "study": "ycsb", "storage": "sd", "block": block}, simulated=True
    )
    made.update(phases=[usual_phase(name, 1, int(a * 1e9), int(b * 1e9)) for name, (a, b) in EDGES_S.items()])
    run_j = true_j * OPERATIONS
    rows = [(0.0, 0.0), (3.0, 3 * IDLE_W), (5.0, 5 * IDLE_W + run_j), (9.0, 9 * IDLE_W + run_j)]
    lines = [f"{int(at * 1e9)},{energy:.9f}" for at, energy in rows]
    (place / COURSE).write_text("\n".join(["board_ns,energy_j", *lines]) + "\n")
    result = {
        "schema": {"name": "result", "version": 2},
        "simulated": True,
        "operations": {"value": OPERATIONS, "u": None, "unit": "1", "reason": "counted"},
        KEY: {"value": stated_j, "u": u, "unit": "J/operation"},
    }
    (place / "result.json").write_text(json.dumps(result))
    made.finish("complete")


def verdict(folder: Path, capsys, stated: dict[str, tuple[float, ...]]) -> tuple[bool, str]:
    """LevelDB truly takes 0.02 J an operation, SQLite 0.01 J."""
    for db, true_j in (("leveldb", 0.02), ("sqlite", 0.01)):
        for block, value in enumerate(stated[db], 1):
            record(folder / f"{db}-{block}", db, true_j, value, 1e-3 * value, block)
    fine = tell_ratios(gather([str(folder)])[0], "db", KEY)
    return fine, capsys.readouterr().out


@pytest.mark.parametrize(
    ("leveldb", "sqlite", "fine", "says"),
    [
        ((0.020001, 0.019999), (0.010001, 0.009999), True, "2 pairs of single records of one block, 2 hold"),
        ((0.0201, 0.0199), (0.01, 0.01), False, "2 pairs of single records of one block, 0 hold"),
        ((0.0301, 0.0299), (0.01001, 0.00999), False, "| 2 | **does not hold** | leveldb more |"),
        (
            (0.00501, 0.00499),
            (0.01001, 0.00999),
            False,
            "differences found: 1, 1 of them the wrong way round",
        ),
    ],
)
def test_a_ratio_is_held_against_the_simulators(tmp_path, capsys, leveldb, sqlite, fine, says):
    holds, text = verdict(tmp_path, capsys, {"leveldb": leveldb, "sqlite": sqlite})
    assert holds is fine
    assert says in text
    assert "SIMULATED" in text


def test_every_record_is_held_against_its_own_truth(tmp_path, capsys):
    record(tmp_path / "right", "sqlite", 0.01, 0.0102, 3e-4)
    record(tmp_path / "wrong", "sqlite", 0.01, 0.0104, 3e-4)
    tell_records(gather([str(tmp_path)])[0])
    assert "| marginal energy of an operation | 1 of 2 | 3 |" in capsys.readouterr().out
