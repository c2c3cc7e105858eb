"""Quantities from the attribution: energy by activity and component, and the medium's amplification."""

import math
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from opjoule.attribution.columns import FOREGROUND, TAIL, WRITE_BACK
from opjoule.base.names import MEDIUM
from opjoule.base.units import Cause, Quantity, missing, unstated
from opjoule.energy.comparison import difference
from opjoule.runs.evaluation.quantities.common import above_idle, idle_power
from opjoule.runs.evaluation.quantities.definition import Definition, Topic
from opjoule.runs.evaluation.quantities.repeat import Repeat
from opjoule.runs.record.groups import ABOVE_IDLE, ENERGY, PER_OPERATION

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


MODEL: Final = (
    "from a model that assigns write-back, sync and tail to the medium; a sensor in its supply would measure it"
)


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
    return unstated(math.fsum(map(float, shares)), "J", MODEL)


def rest(repeat: Repeat) -> Quantity:
    """Energy of processor, memory and the rest of the board above idle [J]: the board's energy less the medium's."""
    whole, part = above_idle("marginal", repeat), medium(repeat)
    if whole.value is None or part.value is None:
        return part if part.value is None else whole
    if repeat.medium:
        return without(whole, part) if repeat.medium.of_board else whole
    return unstated(whole.value - part.value, "J", MODEL)


def without(whole: Quantity, part: Quantity) -> Quantity:
    """Difference of two sensors' energies; a reference that both were calibrated against moves them together."""
    if whole.u is None or part.u is None:
        return unstated(float(whole) - float(part), "J", whole.reason or part.reason)
    return difference(whole, part)


COMPONENTS: Final = (
    Definition(
        f"by_component.{MEDIUM}", "J", Topic.PART, MEDIUM,
        "the medium above idle: by a sensor in its supply, else by a model, without an interval", medium, rests_on=_ALL
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
