"""How long measurements take, as far as it is known before they begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from opjoule.measuring.pace import in_words
from opjoule.measuring.plan import Plan
from opjoule.record.phases import Role
from opjoule.studies.ycsb.study import HARNESS_S, YcsbStudy

OPEN: Final = "loading, waiting for the medium and work without a given length come on top"


def known_s(plan: Plan) -> dict[str, float]:
    """What is certain of one measurement, by what it is [s]: all repeats, and what follows them."""
    study = plan.study
    blocks = study.in_blocks()
    run_s, blocks_s = (each.run_s or 0 if isinstance(each, YcsbStudy) else 0 for each in (study, blocks))
    steps = study.steps()
    cycles = plan.repeats + (blocks is not None)
    idles = sum(step.role is Role.BASELINE for step in steps)
    harness_s = HARNESS_S if any(step.role is Role.CONTROL for step in steps) else 0.0
    return {
        "idle": cycles * idles * plan.idle_s,
        "runs": float(plan.repeats * run_s + blocks_s),
        "harness": harness_s,
    }


def least_s(plans: Sequence[Plan]) -> float:
    """What is certain of several measurements [s]."""
    return sum(sum(known_s(plan).values()) for plan in plans)


def total_words(plans: Sequence[Plan]) -> str:
    """How long all of them take, in a line."""
    parts: Mapping[str, float] = {
        name: sum(known_s(plan)[name] for plan in plans) for name in ("idle", "runs", "harness")
    }
    shown = ", ".join(f"{name} {in_words(length_s)}" for name, length_s in parts.items() if length_s)
    return f"Takes at least {in_words(sum(parts.values()))} in all{f' ({shown})' if shown else ''}; {OPEN}."
