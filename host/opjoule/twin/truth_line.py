"""The true figures of a simulated measurement beside the measured ones. Nothing of the estimate imports this.

Definitions are those of docs/method/energy.md, with the exact energy of the simulator in place of the trace.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from opjoule.twin.rig import COURSE

_SCALES = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


@dataclass(frozen=True)
class Course:
    """The exact energy drawn since the simulation began, over the board's clock."""

    board_ns: np.ndarray
    energy_j: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Course:
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


def true_figures(course: Course, phases: list[dict[str, Any]], operations: float) -> dict[str, float]:
    """The true value of figures of result.json, means over the repeats."""
    repeats = sorted({phase["repeat"] for phase in phases if phase["name"] == "run"})
    found = [_true_repeat(course, [p for p in phases if p["repeat"] == repeat]) for repeat in repeats]
    means = {key: fmean(each[key] for each in found) for key in found[0] if all(key in one for one in found)}
    for key in ("energy_j", "marginal_energy_j"):
        if key in means and operations:
            means[key.replace("_j", "_per_operation_j")] = means[key] / operations
    return means


def _true_repeat(course: Course, phases: list[dict[str, Any]]) -> dict[str, float]:
    def power_w(phase: dict[str, Any]) -> float:
        start_ns = phase["start_board_ns"] + round(phase.get("lead_in_s", 0.0) * 1e9)
        length_s = float(phase["end_board_ns"] - start_ns) * 1e-9
        return course.between(start_ns, phase["end_board_ns"]) / length_s

    def energy_j(phase: dict[str, Any]) -> float:
        return course.between(phase["start_board_ns"], phase["end_board_ns"])

    def length_s(phase: dict[str, Any]) -> float:
        return float(phase["end_board_ns"] - phase["start_board_ns"]) * 1e-9

    run = next(phase for phase in phases if phase["name"] == "run")
    idles_w = [power_w(phase) for phase in phases if phase["name"] in ("idle-before", "idle-after")]
    figures = {"run_energy_j": energy_j(run), "power_w": energy_j(run) / length_s(run)}
    if not idles_w:
        return figures
    idle_w = fmean(idles_w)
    settles = [phase for phase in phases if phase["name"] == "settle"]
    write_back_j = sum(energy_j(phase) - idle_w * length_s(phase) for phase in settles)
    whole_j = figures["run_energy_j"] + write_back_j
    marginal_j = whole_j - idle_w * length_s(run)
    figures |= {"idle_power_w": idle_w, "energy_j": whole_j, "marginal_energy_j": marginal_j}
    return figures | ({"write_back_energy_j": write_back_j} if settles else {})


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
    run, result = (json.loads((record / name).read_text()) for name in ("run.json", "result.json"))
    operations = (result.get("operations") or {}).get("value") or 0.0
    true = true_figures(Course.read(record / COURSE), run["phases"], operations)
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
