"""The quantities of result.json in reading order, with the words for them.

Anything in result.json that has a value and a unit is found, known by name here or not: a report leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opjoule.report.rounding import Rounded, rounded
from opjoule.units import Measured, Missing, Quantity, Unstated, exact, from_json

NONE = "\N{EM DASH}"

WORDS: dict[str, tuple[str, str]] = {
    "marginal_energy_per_operation_j": (
        "energy above idle per operation",
        "marginal_energy_j over the operations: what the idle board would not have drawn",
    ),
    "energy_per_operation_j": ("energy per operation", "energy_j over the operations"),
    "marginal_energy_j": ("energy above idle", "energy_j less idle power times the run's duration"),
    "energy_j": ("energy", "the run's window, and what settle drew above idle"),
    "run_energy_j": (
        "… of the run alone",
        "supply voltage times current, from the first operation to the last",
    ),
    "write_back_energy_j": (
        "… after the last operation",
        "what settle and the medium's tail drew above idle, until writes were done and the power was at rest",
    ),
    "harness_energy_j": (
        "… of the loader",
        "what the loader itself costs: the same workload without a database",
    ),
    "power_w": ("power", "mean of the run"),
    "voltage_v": ("voltage", "mean of the supply's voltage, of a trace on its own"),
    "idle_power_w": ("idle power", "mean before and after, in the same state"),
    "duration_s": ("run", "first operation to last"),
    "settle_s": ("settle", "last operation until writes were done and the power was at rest for 5 s"),
    "operations": ("operations", "completed in the run"),
    "throughput_per_s": ("throughput", "operations over the run's duration"),
    "bandwidth_bytes_per_s": ("bandwidth", "bytes of values over the run's duration"),
    "latency_s.mean": ("latency, mean", "time of one operation as the client sees it"),
    "latency_s.p50": ("latency, median", "half of the operations took no longer"),
    "latency_s.p95": ("latency, 95 %", "95 of 100 operations took no longer"),
    "latency_s.p99": ("latency, 99 %", "99 of 100 operations took no longer"),
    "latency_s.max": ("latency, longest", "the slowest operation"),
    "cpu_fraction": ("CPU", "share of all cores that was busy during the run"),
    "disk_read_bytes": ("disk read", "from and to the medium, run and settle"),
    "disk_written_bytes": ("disk written", "from and to the medium, run and settle"),
    "peak_memory_bytes": ("peak memory", "of the loader with the engine inside"),
    "alignment.residual_s": ("alignment", "standard deviation of the clock evidence around the fitted map"),
    "repeats": ("repeats", "whole cycles that the numbers above are the mean of"),
    "seen_share": ("seen", "part of the run in which the meter converted the current"),
    "lost_samples": ("lost samples", "conversions that were made and did not arrive"),
}
"""By path in result.json: the label and what it means. The order is the order of reading."""
WORDS_OF_VERSION_1: dict[str, tuple[str, str]] = {
    "energy_j": ("energy", "run and settle, idle power in it (result of schema version 1)"),
    "energy_per_operation_j": ("energy per operation", "run and settle with idle power, over the operations"),
    "settle_energy_j": ("… in settle", "drawn after the last operation, idle power in it"),
    "settle_s": ("settle", "last operation until dirty pages were written"),
}
"""What the same keys meant in results of schema version 1."""


@dataclass(frozen=True)
class Row:
    """One quantity in words: `text` is its rounded value with unit, `reason` why it or its uncertainty is missing."""

    path: str
    label: str
    meaning: str
    quantity: Quantity

    @property
    def shown(self) -> Rounded | None:
        """Value and uncertainty as texts, a fraction in per cent; None if the value is missing."""
        of = self.quantity
        if isinstance(of, Missing) or not self.path.endswith("_fraction"):
            return rounded_quantity(of)
        u = 100 * of.u if isinstance(of, Measured) else None
        return rounded(100 * of.value, u, "%", digits_without_u=3)

    @property
    def text(self) -> str:
        """The value rounded to its uncertainty, with unit; a dash if there is none."""
        return NONE if self.shown is None else str(self.shown)

    @property
    def brief(self) -> str:
        """The text for a small place: an uncertainty below what four digits show is left to the full table."""
        of = self.quantity
        if isinstance(of, Measured) and 0 < of.u < 1e-4 * abs(of.value):
            return str(rounded(of.value, None, of.unit))
        if isinstance(of, Unstated) and not self.path.endswith("_fraction"):
            return str(rounded(of.value, None, of.unit, digits_without_u=3))
        return self.text

    @property
    def reason(self) -> str:
        """Why the value or its uncertainty is missing; empty where both are known."""
        return "" if isinstance(self.quantity, Measured) else self.quantity.reason


def quantity(result: Mapping[str, Any], path: str) -> Quantity:
    """The quantity at a dotted path of result.json, Missing where there is none.

    A bare count is exact, another bare number has no stated uncertainty; a missing group's reason is its parts' too.
    """
    found: Any = result
    for part in path.split("."):
        if is_quantity(found):
            break
        found = found.get(part) if isinstance(found, Mapping) else None
    if is_quantity(found):
        return from_json(found)
    if isinstance(found, int) and not isinstance(found, bool):
        return exact(found, "1")
    if isinstance(found, float):
        return Unstated(float(found), "s" if path.endswith("_s") else "1", "")
    return Missing("not in result.json")


def rows(result: Mapping[str, Any]) -> list[Row]:
    """Every quantity of result.json: the known ones in reading order, then the rest in the file's order."""
    found = list(_walk(result, ""))
    order = [path for path in WORDS if path in found] + [path for path in found if path not in WORDS]
    return [Row(path, *words(result, path), quantity(result, path)) for path in order]


def quantity_text(of: Quantity) -> str:
    """Value and uncertainty with unit; a dash for a missing value."""
    shown = rounded_quantity(of)
    return NONE if shown is None else str(shown)


def rounded_quantity(of: Quantity) -> Rounded | None:
    """The rounded texts of a quantity, None if it is missing."""
    if isinstance(of, Missing):
        return None
    u = of.u if isinstance(of, Measured) else None
    return rounded(of.value, u, of.unit)


def is_quantity(entry: object) -> bool:
    """True for an object with a value, an uncertainty and a unit."""
    return isinstance(entry, Mapping) and {"value", "u", "unit"} <= entry.keys()


def _walk(entry: Mapping[str, Any], path: str) -> Iterator[str]:
    """Paths of all quantities, and of the bare numbers that have words."""
    for key, value in entry.items():
        here = f"{path}.{key}" if path else key
        if is_quantity(value) or (here in WORDS and isinstance(value, int | float)):
            yield here
        elif isinstance(value, Mapping):
            yield from _walk(value, here)


def words(result: Mapping[str, Any], path: str) -> tuple[str, str]:
    """Label and meaning of a path, as of the result's schema version."""
    version = (result.get("schema") or {}).get("version")
    known = WORDS_OF_VERSION_1 if version == 1 and path in WORDS_OF_VERSION_1 else WORDS
    return known.get(path, (path.replace("_", " ").replace(".", ", "), ""))
