"""SYNTHETIC records of simulated runs, with the file of their true energy."""

import json
from pathlib import Path

from opjoule.bench.simulation.parts import COURSE
from opjoule.runs.record.run_record import RunRecord
from usual_phases import usual_phase

KEY = "marginal_energy_per_operation_j"
IDLE_W, OPERATIONS = 3.0, 100
EDGES_S = {"idle-before": (0, 3), "run": (3, 5), "settle": (5, 6), "idle-after": (6, 9)}


def synthetic(place: Path, db: str, true_j: float, stated_j: float, u: float, block: int = 1) -> None:
    """A SYNTHETIC record of a run whose operations took `true_j` above idle each, and that states something else."""
    made = RunRecord.create(place, {"db": db, "study": "ycsb", "storage": "sd", "block": block}, simulated=True)
    made.update(phases=[usual_phase(name, 1, int(a * 1e9), int(b * 1e9)) for name, (a, b) in EDGES_S.items()])
    run_j = true_j * OPERATIONS
    rows = [(0.0, 0.0), (3.0, 3 * IDLE_W), (5.0, 5 * IDLE_W + run_j), (9.0, 9 * IDLE_W + run_j)]
    lines = [f"{int(at * 1e9)},{energy:.9f}" for at, energy in rows]
    (place / COURSE).write_text("\n".join(["board_ns,energy_j", *lines]) + "\n")
    result = {
        "schema": {"name": "result", "version": 3},
        "simulated": True,
        "operations": {"value": OPERATIONS, "u": None, "unit": "1", "reason": "counted"},
        KEY: {"value": stated_j, "u": u, "unit": "J/operation"},
    }
    (place / "result.json").write_text(json.dumps(result))
    made.finish("complete")
