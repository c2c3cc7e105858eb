"""One rate of operations for all conditions of a campaign: a part of what the slowest of them reaches.

Engines that run as fast as they can are compared at different rates, and some of them while their medium holds them up.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from opjoule.errors import BadInput, RigFault
from opjoule.measuring.plan import Plan
from opjoule.record.json_file import write_json
from opjoule.record.run_record import RunRecord

RATES: Final = "rates"
"""Folder of the records that show each condition's own rate, in the campaign's folder."""
EQUAL_RATE: Final = "rate.json"
"""File in the campaign's folder with the rate that all conditions have."""
PART: Final = 0.5
"""Part of the slowest condition's own rate: at half of it engine and medium keep up."""
Measure = Callable[[Plan, Path], tuple[int, Path]]


def at_equal_rate(folder: Path, plans: Sequence[Plan], measure_one: Measure) -> Measure:
    """The measurement of a plan, at the rate that all plans have; finds the rate first if the folder does not have it.

    Raises: RigFault: a condition's own rate cannot be measured.
    """
    wanting = [plan for plan in plans if plan.study.wants_equal_rate]
    if not wanting:
        return measure_one
    path = folder / EQUAL_RATE
    if path.exists():
        per_s = _read(path)
    else:
        own_per_s = {}
        for number, plan in enumerate(wanting, 1):
            print(f"rate of {plan.condition_name} ({number} of {len(wanting)})", file=sys.stderr)
            own_per_s[plan.condition_name] = _own_rate_per_s(plan, folder / RATES, measure_one)
        slowest = min(own_per_s, key=lambda name: own_per_s[name])
        per_s = max(float(f"{PART * own_per_s[slowest]:.2g}"), 1.0)
        write_json(path, {"operations_per_s": per_s, "slowest": slowest, "own_operations_per_s": own_per_s})
    print(f"all conditions run at {per_s:,.0f} operations per second", file=sys.stderr)
    return lambda plan, place: measure_one(replace(plan, study=plan.study.at_rate(per_s)), place)


def _read(path: Path) -> float:
    try:
        per_s = float(json.loads(path.read_text(encoding="utf-8"))["operations_per_s"])
    except (OSError, ValueError, KeyError, TypeError):
        per_s = 0.0
    if per_s <= 0.0:
        raise BadInput(f"{path} does not have the rate of the campaign's runs: measure into another --out")
    return per_s


def _own_rate_per_s(plan: Plan, folder: Path, measure_one: Measure) -> float:
    """Operations per second that a condition reaches, from a short run of its own."""
    place = folder / plan.condition_name.replace(" ", "-").replace("/", "-")
    if not (place / "run.json").exists():
        _, place = measure_one(replace(plan, study=plan.study.ranging(), repeats=1, idle_s=0.0), place)
    summary = RunRecord.open(place).run.loader.get("run-1")
    if not (summary and summary.operations and summary.duration_s):
        raise RigFault(f"the rate of {plan.condition_name} is not known: its record is {place}")
    return summary.operations / summary.duration_s
