"""The table of repeats: what each gave, their mean and standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from opjoule.report.markup import Element, element, row, table
from opjoule.report.quantities import NONE
from opjoule.report.rounding import rounded

COLUMNS = {
    "marginal_energy_per_operation_j": "above idle per operation",
    "energy_per_operation_j": "in all per operation",
    "write_back_energy_j": "after the last operation",
    "power_w": "power",
    "idle_power_w": "idle power",
    "throughput_per_s": "operations",
    "latency_s.p99": "latency, 99 %",
    "duration_s": "run",
    "settle_s": "settle",
}


def repeats_table(result: Mapping[str, Any]) -> list[Element]:
    """One row a repeat, then mean and standard deviation; nothing for one repeat, or none listed."""
    listed = result.get("by_repeat") or {}
    shown = {path: listed[path] for path in COLUMNS if path in listed}
    count = max((each["n"] for each in shown.values()), default=0)
    if count < 2:
        return []
    body = [
        row(str(number + 1), *(_figure(each, each["values"][number]) for each in shown.values()))
        for number in range(count)
    ]
    body.append(row("mean", *(_figure(each, fmean(each["values"])) for each in shown.values())))
    body.append(
        row("standard deviation", *(_figure(each, each["standard_deviation"], 2) for each in shown.values()))
    )
    return [table(("repeat", *(COLUMNS[path] for path in shown)), body, f"Repeats (n = {count})")]


def _figure(of: Mapping[str, Any], value: float | None, digits: int = 4) -> Element:
    text = NONE if value is None else str(rounded(value, None, of["unit"], digits))
    return element("span", text, class_="figure")
