"""Quantities of a study that counts operations, and of a study of key-value stores, in addition to COMMON."""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from opjoule.base.units import Quantity, exact, missing, unstated
from opjoule.runs.evaluation.quantities.attribution import AMPLIFICATION, BY_ACTIVITY, COMPONENTS
from opjoule.runs.evaluation.quantities.common import above_idle, budget_parts
from opjoule.runs.evaluation.quantities.definition import FIRST, Definition, Topic
from opjoule.runs.evaluation.quantities.repeat import Repeat
from opjoule.runs.record.groups import ABOVE_IDLE, ENERGY, PER_OPERATION

_ALL: Final = (ENERGY, ABOVE_IDLE, PER_OPERATION)


def operations(repeat: Repeat) -> Quantity:
    """Operations of the run; if the log is off, the loader's own count."""
    return exact(float(len(repeat.operations) or repeat.counted), "1")


def per_operation(repeat: Repeat, energy: Quantity) -> Quantity:
    """An energy divided by the run's operations [J]."""
    return energy.over(float(operations(repeat)), "no operation ended")


def rate(repeat: Repeat, amount: float, unit: str) -> Quantity:
    """An amount divided by the run's duration."""
    return Quantity.from_standard(amount / repeat.run_s, repeat.clock_u * amount / repeat.run_s, unit)


def latency(repeat: Repeat, name: str) -> Quantity:
    """One of the figures of the operations' latencies [s]."""
    if repeat.latency is None:
        return missing("no operation was logged", "s")
    why = "a property of the distribution in one run; the board clock resolves 1 ns"
    return unstated(getattr(repeat.latency, name), "s", why)


def exact_mean(repeats: Sequence[Quantity]) -> Quantity:
    """Mean of counts."""
    return exact(fmean(map(float, repeats)), "1")


OPERATIONS: Final = (
    Definition(
        "marginal_energy_per_operation_j", "J", Topic.HEADLINE, "energy above idle per operation",
        "marginal_energy_j over the operations: what the idle board would not have drawn",
        lambda repeat: per_operation(repeat, above_idle("marginal", repeat)), rests_on=_ALL,
        headline="above idle per operation", column="above idle per operation", compared=True,
        budget="headline_budget",
    ),
    Definition(
        "energy_per_operation_j", "J", Topic.HEADLINE, "energy per operation", "energy_j over the operations",
        lambda repeat: per_operation(repeat, above_idle("energy", repeat)), rests_on=_ALL,
        headline="in all per operation", column="in all per operation",
        compared=True, rank={"compared": FIRST},
    ),
    Definition(
        "operations", "1", Topic.WORK, "operations", "completed in the run",
        operations, exact_mean, rests_on=(PER_OPERATION,),
    ),
    Definition(
        "throughput_per_s", "1/s", Topic.WORK, "throughput", "operations over the run's duration",
        lambda repeat: rate(repeat, float(operations(repeat)), "1/s"), rests_on=(PER_OPERATION,),
        tile="throughput, operations", column="operations", compared=True,
        line=("throughput", "operations; {bandwidth_bytes_per_s} of values"),
    ),
    Definition(
        "latency_s.mean", "s", Topic.LATENCY, "latency, mean", "time of one operation as the client sees it",
        lambda repeat: latency(repeat, "mean"), rests_on=(PER_OPERATION,),
        line=("latency", "mean; median {latency_s.p50}, 95 % {latency_s.p95}, 99 % {latency_s.p99}, "
              "longest {latency_s.max}"),
    ),
    Definition(
        "latency_s.p50", "s", Topic.LATENCY, "latency, median", "half of the operations took no longer",
        lambda repeat: latency(repeat, "p50"), rests_on=(PER_OPERATION,),
    ),
    Definition(
        "latency_s.p95", "s", Topic.LATENCY, "latency, 95 %", "95 of 100 operations took no longer",
        lambda repeat: latency(repeat, "p95"), rests_on=(PER_OPERATION,),
    ),
    Definition(
        "latency_s.p99", "s", Topic.LATENCY, "latency, 99 %", "99 of 100 operations took no longer",
        lambda repeat: latency(repeat, "p99"), rests_on=(PER_OPERATION,), tile="latency, 99 %", column="latency, 99 %",
    ),
    Definition(
        "latency_s.max", "s", Topic.LATENCY, "latency, longest", "the slowest operation",
        lambda repeat: latency(repeat, "max"), rests_on=(PER_OPERATION,),
    ),
    Definition(
        "by_operation.*.all_told_energy_per_operation_j", "J", Topic.PART, "energy all told per *", rests_on=_ALL,
        meaning="what an operation of a kind costs above idle with all that it causes later, from the energy of whole "
                "runs: what reads leave of it belongs to the kind that writes",
        required=False,
    ),
    Definition(
        "by_operation.*.energy_per_operation_j", "J", Topic.PART, rests_on=_ALL,
        meaning="energy while it is carried out (foreground), with `count` and `identifiable` (whether the data "
                "suffice to state it)",
    ),
    Definition(
        "by_operation.*.background_energy_per_operation_j", "J", Topic.PART, rests_on=_ALL,
        meaning="energy that it causes later: all told, less what it draws while it is carried out",
        required=False,
    ),
    Definition(
        "by_operation.*.harness_energy_per_operation_j", "J", Topic.PART, rests_on=_ALL,
        meaning="the loader's own part of all told", required=False,
    ),
    *budget_parts("headline_budget", "the same for marginal_energy_per_operation_j", *_ALL),
)  # fmt: skip
"""Quantities of a study that counts operations."""

KEY_VALUE: Final = (
    Definition(
        "harness_energy_j", "J", Topic.ENERGY, "… of the loader",
        "what the loader itself costs: the same workload without a database",
        rests_on=_ALL, line=("loader alone", "above idle, the work without a database"),
    ),
    Definition(
        "bandwidth_bytes_per_s", "B/s", Topic.WORK, "bandwidth", "bytes of values over the run's duration",
        lambda repeat: rate(repeat, float(repeat.operations.bytes.sum()), "B/s"),
        rests_on=(PER_OPERATION,), compared=True,
    ),
    *AMPLIFICATION,
    *BY_ACTIVITY,
    *COMPONENTS,
)  # fmt: skip
"""Quantities of a study of key-value stores."""
