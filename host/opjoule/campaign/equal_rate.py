"""One rate of operations for all conditions of a campaign that do the same work: a part of what the slowest reaches.

Engines that run as fast as they can are compared at different rates, and some of them while their medium holds them up.
"""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from opjoule.base.errors import BadInput, Interrupted, OpJouleError, RigFault, of_system
from opjoule.campaign.past_times import RATES
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.record.directory import free_directory
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.run_record import RunRecord

EQUAL_RATE: Final = "rate.json"
"""File in the campaign's folder with the rate that all conditions have."""
KEPT_UP: Final = 0.5
"""Part of the rate of a short run at which engine and medium keep up: such a run still writes into empty memory."""
Measure = Callable[[Plan, Path], tuple[int, Path]]


def at_equal_rate(folder: Path, plans: Sequence[Plan], measure_one: Measure) -> Measure:
    """The measurement of a plan, at the rate that all plans of its work have.

    Finds the rates first if the folder does not have them.
    Raises: RigFault: no condition's own rate can be measured. BadInput: the folder's file does not have a rate.
    """
    wanting = [plan for plan in plans if plan.study.equal_rate_group]
    if not wanting:
        return measure_one
    path = folder / EQUAL_RATE
    known = _read(path) if path.exists() else {}
    lacking = [plan for plan in wanting if plan.study.equal_rate_group not in known]
    own_per_s: dict[str, dict[str, float]] = {}
    for number, plan in enumerate(lacking, 1):
        print(f"rate of {plan.condition_name} ({number} of {len(lacking)})", file=sys.stderr)
        of_group = own_per_s.setdefault(plan.study.equal_rate_group, {})
        try:
            of_group[plan.condition_name] = _own_rate_per_s(plan, folder / RATES, measure_one)
        except Interrupted:
            raise
        except (OpJouleError, OSError) as error:  # its cells will fail, too; the others go on
            why = str(error) if isinstance(error, OpJouleError) else of_system(error)
            print(f"rate of {plan.condition_name} not found: {why}", file=sys.stderr)
    if lost := [group for group, own in own_per_s.items() if not own]:
        raise RigFault(f"the rate of no condition of {', '.join(lost)} is known; set one with rate = ")
    for group, own in own_per_s.items():
        slowest = min(own, key=lambda name: own[name])
        per_s = max(float(f"{KEPT_UP * own[slowest]:.2g}"), 1.0)
        known[group] = {"operations_per_s": per_s, "slowest": slowest, "own_operations_per_s": own}
    if own_per_s:
        write_json(path, known)
    for group, found in known.items():
        print(f"{group}: all run at {found['operations_per_s']:,.0f} operations per second", file=sys.stderr)

    def at(plan: Plan, place: Path) -> tuple[int, Path]:
        group = plan.study.equal_rate_group
        if not group:
            return measure_one(plan, place)
        return measure_one(replace(plan, study=plan.study.at_rate(known[group]["operations_per_s"])), place)

    return at


def _read(path: Path) -> dict[str, Any]:
    """Rates by the work that they are of. Raises: BadInput: the file has none."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if all(float(found["operations_per_s"]) > 0.0 for found in known.values()):
            return dict(known)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise BadInput(f"{path} does not have the rate of the campaign's runs: measure into another --out")


def _own_rate_per_s(plan: Plan, folder: Path, measure_one: Measure) -> float:
    """Operations per second that a condition reaches, from a short run of its own.

    A record of an earlier, interrupted search serves if its run has ended; else the run is measured again beside it.
    """
    place = folder / plan.condition_name.replace(" ", "-").replace("/", "-")
    if place.exists() and (per_s := _rate_in(place)):
        return per_s
    ranging = replace(plan, study=plan.study.ranging(), repeats=1, idle_s=0.0)
    _, place = measure_one(ranging, free_directory(place))
    if per_s := _rate_in(place):
        return per_s
    raise RigFault(f"its record {place} has no run")


def _rate_in(place: Path) -> float | None:
    """Operations per second of a record's run; None if it did not end."""
    with suppress(OpJouleError):
        summary = RunRecord.open(place).run.loader.get("run-1")
        if summary and summary.operations and summary.duration_s:
            return summary.operations / summary.duration_s
    return None
