"""The true figures of a simulated measurement beside the measured ones. Nothing of the estimate imports this.

Definitions are those of docs/method/energy.md, with the exact energy of the simulator in place of the trace.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from opjoule.record.phases import Cycle, Phase, worked_repeats
from opjoule.record.run_record import RunRecord
from opjoule.twin.supply import COURSE

_SCALES = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


@dataclass(frozen=True)
class TrueCourse:
    """The exact energy drawn since the simulation began, over the board's clock."""

    board_ns: np.ndarray
    energy_j: np.ndarray

    @classmethod
    def read(cls, path: Path) -> TrueCourse:
        """The file that the simulator has left in the record."""
        with path.open() as rows:
            cells = [(int(row["board_ns"]), float(row["energy_j"])) for row in csv.DictReader(rows)]
        times, energies = zip(*cells, strict=True)
        return cls(np.array(times, np.int64), np.array(energies))

    def between(self, start_ns: int, end_ns: int) -> float:
        """Energy [J] between two times; between rows the power is constant."""
        at_s = np.array([start_ns - self.board_ns[0], end_ns - self.board_ns[0]]) * 1e-9
        start_j, end_j = np.interp(at_s, (self.board_ns - self.board_ns[0]) * 1e-9, self.energy_j)
        return float(end_j - start_j)


def true_figures(course: TrueCourse, phases: Sequence[Phase], operations: float) -> dict[str, float]:
    """The true value of figures of result.json, means over the repeats."""
    cycles = [Cycle.of(phases, repeat) for repeat in worked_repeats(phases)]
    found = [_true_repeat(course, cycle) for cycle in cycles if cycle]
    means = {key: fmean(each[key] for each in found) for key in found[0] if all(key in one for one in found)}
    for key in ("energy_j", "marginal_energy_j"):
        if key in means and operations:
            means[key.replace("_j", "_per_operation_j")] = means[key] / operations
    return means


def _true_repeat(course: TrueCourse, cycle: Cycle) -> dict[str, float]:
    def energy_j(phase: Phase) -> float:
        return course.between(phase.start_board_ns, phase.end_board_ns)

    def power_w(phase: Phase) -> float:
        return energy_j(phase.steady) / phase.steady.duration_s

    run = cycle.work
    figures = {"run_energy_j": energy_j(run), "power_w": energy_j(run) / run.duration_s}
    if not cycle.baselines:
        return figures
    idle_w = fmean(power_w(phase) for phase in cycle.baselines)
    drain = cycle.drain
    write_back_j = energy_j(drain) - idle_w * drain.duration_s if drain else 0.0
    whole_j = figures["run_energy_j"] + write_back_j
    marginal_j = whole_j - idle_w * run.duration_s
    figures |= {"idle_power_w": idle_w, "energy_j": whole_j, "marginal_energy_j": marginal_j}
    return figures | ({"write_back_energy_j": write_back_j} if drain else {})


SHOWN = {
    "marginal_energy_per_operation_j": "marginal energy of an operation",
    "energy_j": "energy",
    "run_energy_j": "energy of the run alone",
    "write_back_energy_j": "write-back",
    "idle_power_w": "idle power",
}


def truth_lines(record: Path) -> list[str]:
    """A line for each figure of which the simulator knows the truth; none where it has left no course or no result."""
    if not (record / COURSE).exists() or not (record / "result.json").exists():
        return []
    run, result = RunRecord.open(record).run, json.loads((record / "result.json").read_text())
    operations = (result.get("operations") or {}).get("value") or 0.0
    true = true_figures(TrueCourse.read(record / COURSE), run.phases, operations)
    if "run_energy_j" not in result:  # of an earlier version, whose energy_j was something else
        true.pop("energy_j", None)
    return [
        _line(about, true[key], result[key])
        for key, about in SHOWN.items()
        if key in true and isinstance(result.get(key), dict) and result[key].get("u") is not None
    ]


def _line(about: str, true: float, stated: dict[str, Any]) -> str:
    value, u, unit = stated["value"], stated["u"], stated["unit"]
    scale, prefix = next((pair for pair in _SCALES if abs(true) >= pair[0]), _SCALES[-1])
    held = "holds it" if abs(value - true) <= u else "DOES NOT HOLD IT"
    figures = f"{true / scale:.4g} {prefix}{unit}; stated {value / scale:.4g} ± {u / scale:.2g}"
    return f"SIMULATED truth: {about} {figures} {prefix}{unit} {held}"
