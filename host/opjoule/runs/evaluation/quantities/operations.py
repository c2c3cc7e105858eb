"""Quantities of a study that counts operations, and of a study of key-value stores, in addition to COMMON.

Those of key-value stores include the attribution: energy by activity and component, and the medium's amplification.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Final

from msgspec.structs import replace

from opjoule.attribution.columns import FOREGROUND, TAIL, WRITE_BACK
from opjoule.base.settings import MEDIUM
from opjoule.base.units import Cause, Quantity, exact, missing, unstated
from opjoule.energy.comparison import difference
from opjoule.runs.evaluation.quantities.common import above_idle, budget_parts, idle_power
from opjoule.runs.evaluation.quantities.definition import FIRST, Definition, Repeat, Topic
from opjoule.runs.record.result import ABOVE_IDLE, ENERGY, PER_OPERATION

_ALL: Final = (ENERGY, ABOVE_IDLE, PER_OPERATION)
_MEDIUM: Final = {
    WRITE_BACK: "nothing was written to the medium outside of syncs, or its counters are not known",
    TAIL: "the power shows no tail after a read or a write",
}


def identified(share: Quantity) -> Quantity:
    """A share of the energy [J] with its own interval; missing if it is not identifiable."""
    return share.absent("J") if share.reason else replace(share, shared={})


def idle(repeat: Repeat) -> Quantity:
    """Idle power times the run's duration [J]."""
    return idle_power(repeat).scale(repeat.run_s, "J")


def foreground(repeat: Repeat) -> Quantity:
    """Energy of the operations during their execution, less the harness [J]."""
    if isinstance(repeat.attribution, Quantity):
        return repeat.attribution.absent("J")
    return _without_harness(identified(repeat.attribution.foreground), repeat.harness)


def _without_harness(energy: Quantity, harness: Quantity) -> Quantity:
    """An energy that includes the harness, less the harness if that is known."""
    if energy.value is None or harness.value is None:
        return energy
    left_j = energy.value - harness.value
    if energy.u is None or harness.u is None:
        return unstated(left_j, "J", harness.reason)
    return Quantity.from_standard(left_j, math.hypot(energy.standard_u, harness.standard_u), "J")


def activity(name: str) -> Callable[[Repeat], Quantity]:
    """The formula of an activity's energy [J]."""

    def of_repeat(repeat: Repeat) -> Quantity:
        if isinstance(repeat.attribution, Quantity):
            return repeat.attribution.absent("J")
        share = repeat.attribution.activities.get(name)
        if share is None:
            known = _MEDIUM.get(name)
            return missing(known, "J", Cause.NOT_FOUND) if known else missing(Cause.NOT_REPORTED, "J")
        return identified(share)

    return of_repeat


def unseparated(repeat: Repeat) -> Quantity:
    """Sum of the parts that are not identifiable [J]."""
    if isinstance(repeat.attribution, Quantity):
        return repeat.attribution.absent("J")
    rest = repeat.attribution.unseparated.because(None)
    if repeat.attribution.foreground.reason:
        # The harness is identifiable, and part of the foreground.
        return _without_harness(rest, repeat.harness)
    return rest


def _activity(name: str, meaning: str, formula: Callable[[Repeat], Quantity]) -> Definition:
    return Definition(f"by_activity.{name}", "J", Topic.PART, name, meaning, formula, rests_on=_ALL)


BY_ACTIVITY: Final = (
    _activity("idle", "idle power times the run's duration", idle),
    _activity(
        "harness",
        "what the loader alone draws for the same number of operations",
        lambda repeat: repeat.harness,
    ),
    _activity(
        FOREGROUND,
        "while operations are carried out, without the harness; by kind in `by_operation`",
        foreground,
    ),
    _activity("flush", "memtables written out, without their syncs", activity("flush")),
    _activity("compaction", "files merged, without their syncs", activity("compaction")),
    _activity("checkpoint", "a log written back, without its syncs", activity("checkpoint")),
    _activity("sync", "waiting until written data are safe, including the medium's work", activity("sync")),
    _activity(WRITE_BACK, "the medium while it writes data that no operation waits for", activity(WRITE_BACK)),
    _activity(TAIL, "the medium after each read or write, until it rests or is busy again", activity(TAIL)),
    _activity("unseparated", "sum of the parts that cannot be separated; 0 if all can", unseparated),
)
"""Their sum is energy_j."""


BY_RULE: Final = "write-back, sync and tail are assigned to the medium; a sensor in its supply would measure it"


def medium(repeat: Repeat) -> Quantity:
    """Energy of the medium above idle [J], from the sensor in its supply, otherwise from the model."""
    if repeat.medium:
        marginal = repeat.medium.marginal
        return marginal.energy if marginal else missing(Cause.NO_IDLE, "J")
    if isinstance(repeat.attribution, Quantity):
        return repeat.attribution.absent("J")
    parts = ("sync", WRITE_BACK, TAIL)
    shares = [share for name, share in repeat.attribution.activities.items() if name in parts]
    if not shares:
        return missing(_MEDIUM[WRITE_BACK], "J", Cause.NOT_FOUND)
    if unknown := next((share for share in shares if share.reason), None):
        return unknown.absent("J")
    return unstated(math.fsum(map(float, shares)), "J", BY_RULE, Cause.RULE)


def rest(repeat: Repeat) -> Quantity:
    """Energy of processor, memory and the rest of the board above idle [J]: the board's energy less the medium's."""
    whole, part = above_idle("marginal", repeat), medium(repeat)
    if whole.value is None or part.value is None:
        return part if part.value is None else whole
    if repeat.medium:
        return without(whole, part) if repeat.medium.of_board else whole
    return unstated(whole.value - part.value, "J", BY_RULE, Cause.RULE)


def without(whole: Quantity, part: Quantity) -> Quantity:
    """Difference of two sensors' energies; a reference that both were calibrated against moves them together."""
    if whole.u is None or part.u is None:
        return unstated(float(whole) - float(part), "J", whole.reason or part.reason)
    return difference(whole, part)


COMPONENTS: Final = (
    Definition(
        f"by_component.{MEDIUM}", "J", Topic.PART, MEDIUM,
        "the medium above idle: by a sensor in its supply, else by a rule, without an interval", medium, rests_on=_ALL
    ),
    Definition(
        "by_component.rest", "J", Topic.PART, "rest", "processor and all else above idle, likewise",
        rest, rests_on=_ALL,
    ),
)  # fmt: skip
"""All energies of a sensor in the medium's own supply are under `by_sensor`."""


def asked_bytes(repeat: Repeat, writes: bool) -> float:
    """Bytes of values that operations wrote or read."""
    moved = repeat.operations.bytes_by_kind()
    return float(sum(size for name, size in moved.items() if (name not in READS) == writes))


def amplification(repeat: Repeat, counter: str, *, writes: bool) -> Quantity:
    """Bytes to or from the medium during run and settle, divided by the bytes requested."""
    value_bytes = asked_bytes(repeat, writes)
    if isinstance(repeat.samples, Quantity):
        return repeat.samples.absent("1")
    if not value_bytes:
        return missing(f"no operation {'wrote' if writes else 'read'} bytes of values", "1")
    moved_bytes = repeat.samples.grown(counter, settle=True)
    return unstated(moved_bytes / value_bytes, "1", "counters of the board")


def energy_per_byte(repeat: Repeat) -> Quantity:
    """Energy above idle divided by all bytes of values that operations moved [J/B]."""
    energy = above_idle("marginal", repeat)
    value_bytes = asked_bytes(repeat, True) + asked_bytes(repeat, False)
    return energy.over(value_bytes, "no operation moved bytes of values", "J/B")


READS: Final = ("read", "scan")
"""Kinds of operation that write nothing."""
AMPLIFICATION: Final = (
    Definition(
        "write_amplification", "1", Topic.USAGE, "write amplification",
        "bytes that went to the medium, run and settle, over bytes of values written",
        lambda repeat: amplification(repeat, "device_written_bytes", writes=True), rests_on=(PER_OPERATION,),
    ),
    Definition(
        "read_amplification", "1", Topic.USAGE, "read amplification",
        "bytes that came from the medium, run and settle, over bytes of values read",
        lambda repeat: amplification(repeat, "device_read_bytes", writes=False), rests_on=(PER_OPERATION,),
    ),
    Definition(
        "energy_per_byte_j", "J/B", Topic.USAGE, "energy above idle per byte",
        "marginal_energy_j over bytes of values that operations moved", energy_per_byte, rests_on=_ALL,
    ),
)  # fmt: skip
"""Quantities of a study of key-value stores, in addition to the energies."""


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
