"""What an operation costs above idle with all that it causes, by kind, from the energies of whole runs.

A run and its settle contain everything that its operations cause. Reads cause nothing later, so what they leave of the
whole belongs to the kind that writes: its syncs, flushes, compactions, write-back and tail need not be told apart. What
the reads draw is known from the windows of the runs, and from the time for which they work. docs/method/attribution.md,
"All told". Kinds of which several write are told apart by runs in other mixes (mixes.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from opjoule.attribution.attributed_run import Attribution
from opjoule.attribution.budgets import SCALE, SensorBudget, sum_of_sensors
from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.units import Cause, Quantity, exact, mean_shared, missing, unstated
from opjoule.energy.operations.operation_table import OperationTable, median_ns
from opjoule.runs.evaluation.mixes import WriteCosts, WrittenRun
from opjoule.runs.evaluation.quantities.definition import (
    ALL_TOLD,
    Figures,
    MediumEnergy,
    Repeat,
    RepeatEnergy,
    over_repeats,
    told_path,
)
from opjoule.runs.evaluation.quantities.operations import READS
from opjoule.runs.evaluation.stability import NOT_SHARED

PROCESSOR: Final = (0.25, 2.5)
"""Bounds of an operation's power while it works, over that of a processor that runs the loader without a database."""
WORKS_TIMES: Final = 3.0
"""An operation that takes longer than so many times the median of its kind waits for the rest."""
BY_BYTES: Final = "divided among the kinds that write, in proportion to their bytes"


@dataclass(frozen=True)
class MixedRun:
    """A run in another mix of the operations."""

    counts: Mapping[str, int]
    """Number of operations by kind."""
    energy: RepeatEnergy
    medium: MediumEnergy | None = None
    """None without a sensor in the medium's own supply."""


def told_figures(repeats: Sequence[Repeat], costs: WriteCosts | None = None) -> list[Figures]:
    """What an operation of each kind costs all told, by its path in result.json, for each repeat.

    `costs`: what an operation of each kind that writes costs, from runs in other mixes; None if these do not show it.
    """
    kinds = OperationTable.concatenate([repeat.operations for repeat in repeats]).counts()
    told: list[Figures] = []
    for repeat in repeats:
        shares = all_told(repeat, costs)
        told.append({told_path(kind): _figure(shares.get(kind, _absent(kind)), repeat, kind) for kind in kinds})
    return told


def by_operation(repeats: Sequence[Repeat], costs: WriteCosts | None = None) -> dict[str, Any]:
    """Counts and energies by kind of operation, means over the repeats; `costs` as in told_figures()."""
    counts = OperationTable.concatenate([repeat.operations for repeat in repeats]).counts()
    told = [all_told(repeat, costs) for repeat in repeats]
    figures = told_figures(repeats, costs)
    entries = {}
    for kind, count in counts.items():
        energy = over_repeats([_figure(_own(repeat, kind), repeat, kind) for repeat in repeats])
        entries[kind] = {
            "count": exact(count / len(repeats), "1"),
            ALL_TOLD: over_repeats([of_repeat[told_path(kind)] for of_repeat in figures]),
            "energy_per_operation_j": energy,
            "background_energy_per_operation_j": _later(told, repeats, kind),
            "harness_energy_per_operation_j": over_repeats([_harness(repeat) for repeat in repeats]),
            "identifiable": energy.value is not None,
        }
    return entries


def write_costs(repeats: Sequence[Repeat], mixes: Sequence[MixedRun]) -> WriteCosts | None:
    """What operations of several kinds that write cost, by runs in other mixes; None if these do not show it.

    A read is taken to draw the same in all mixes.
    """
    counts = OperationTable.concatenate([repeat.operations for repeat in repeats]).counts()
    writing = [kind for kind in counts if kind not in READS]
    each = [(kind, _each(repeats, kind)) for kind in counts if kind in READS]
    known = [mix for mix in mixes if mix.energy.marginal and mix.energy.marginal.energy.u is not None]
    if len(writing) < 2 or any(read.value is None for _, read in each):
        return None

    def written(counts: Mapping[str, int], whole: Quantity, energy: RepeatEnergy) -> WrittenRun:
        reads = [read.scale(-counts.get(kind, 0)) for kind, read in each]
        parts = energy.marginal.budget.parts if energy.marginal else {}
        own_u_j = math.hypot(*(parts.get(name, 0.0) for name in NOT_SHARED))
        writes = {kind: count for kind, count in counts.items() if kind in writing}
        return WrittenRun(writes, Quantity.sum_of([whole, *reads]), own_u_j)

    wholes = [_whole(repeat) for repeat in repeats]
    if any(whole.u is None for whole in wholes):
        return None
    return WriteCosts.of(
        [
            written(repeat.operations.counts(), whole, repeat.energy)
            for repeat, whole in zip(repeats, wholes, strict=True)
        ],
        [written(mix.counts, _above_idle(mix.energy, mix.medium), mix.energy) for mix in known],
    )


def _each(repeats: Sequence[Repeat], kind: str) -> Quantity:
    """Energy of one operation of a kind that only reads, mean over the repeats [J]; its errors are common to all."""
    shares = [_reads(repeat, kind).over(repeat.operations.counts().get(kind, 0), "none in it") for repeat in repeats]
    if lacking := next((share for share in shares if share.u is None), None):
        return lacking.absent("J")
    standard_u = fmean(share.standard_u for share in shares)
    return Quantity.from_standard(fmean(map(float, shares)), standard_u, "J", shared=mean_shared(shares))


def all_told(repeat: Repeat, costs: WriteCosts | None = None) -> Mapping[str, Quantity]:
    """Energy above idle of all operations of each kind in one repeat, with all that they cause [J].

    The energies add up to that of run and settle above idle. Missing without idle power, or if what the reads draw is
    not known.
    """
    whole = _whole(repeat)
    counts = repeat.operations.counts()
    if whole.value is None or len(counts) == 1:
        return dict.fromkeys(counts, whole)
    reading = {kind: _reads(repeat, kind) for kind in counts if kind in READS}
    writing = [kind for kind in counts if kind not in READS]
    if unknown := next((share for share in reading.values() if share.value is None), None):
        return {**reading, **dict.fromkeys(writing, unknown)}
    left = Quantity.sum_of([whole, *(-share for share in reading.values())])
    if not writing:
        return _with_rest(reading, left)
    if len(writing) == 1:
        return {**reading, writing[0]: left}
    return {**reading, **(costs.shares(left, counts) if costs else _by_bytes(repeat, left, writing))}


def _whole(repeat: Repeat) -> Quantity:
    """Energy of run and settle above idle; a medium with its own supply and sensor is in it."""
    if isinstance(repeat.attribution, Attribution):
        return repeat.attribution.whole
    return _above_idle(repeat.energy, repeat.medium)


def _above_idle(energy: RepeatEnergy, medium: MediumEnergy | None) -> Quantity:
    """Energy above idle of the board, and of a medium with its own supply and sensor."""
    if energy.marginal is None:
        return missing(Cause.NO_IDLE, "J")
    if medium and medium.marginal and not medium.of_board:
        return sum_of_sensors(energy.marginal, medium.marginal)
    return SensorBudget.of([energy.marginal]).whole


@dataclass(frozen=True)
class _Bounds:
    """Least and greatest energy of the operations of a kind, with equal probability between them."""

    least_j: float
    most_j: float

    @property
    def middle(self) -> Quantity:
        """The middle, with the standard uncertainty of a rectangular distribution. Source: JCGM 100:2008, 4.3.7."""
        u_j = (self.most_j - self.least_j) / math.sqrt(12.0)
        return Quantity.from_standard((self.least_j + self.most_j) / 2, u_j, "J")

    def off_j(self, energy_j: float) -> float:
        """Distance of an energy from the nearer bound; 0 between the bounds."""
        return max(self.least_j - energy_j, energy_j - self.most_j, 0.0)


def _reads(repeat: Repeat, kind: str) -> Quantity:
    """Energy of the operations of a kind that only reads.

    The windows of the repeat decide if they identify it. If not, the time for which the operations worked is a second,
    independent estimate: the mean is weighted by their variances. If the windows' is beyond the bounds of the other,
    the interval reaches those, too.
    """
    attribution, found, why = repeat.attribution, None, missing(f"what a {kind} draws was not found", "J")
    if isinstance(attribution, Quantity):
        why = attribution
    elif found := attribution.operations.get(kind):
        why, found = found if found.reason else why, None if kind in attribution.blind else found
    bounds = _by_time(repeat, kind)
    if not (found and bounds and found.reason):
        known = found or (bounds.middle if bounds else None)
        return known.because(None) if known else why.absent("J")
    windows, time = found, bounds.middle
    weight = time.standard_u**2 / (windows.standard_u**2 + time.standard_u**2)
    mean = Quantity.sum_of([windows.scale(weight), time.scale(1.0 - weight)])
    if (off_j := bounds.off_j(float(windows))) > COVERAGE_FACTOR * windows.standard_u:
        mean = replace(mean, u=COVERAGE_FACTOR * math.hypot(mean.standard_u, off_j / math.sqrt(3.0)))
    return mean


def _by_time(repeat: Repeat, kind: str) -> _Bounds | None:
    """Bounds of the energy of a kind from the time for which its operations worked, and the loader's own part.

    None if they read from the medium, which has a power of its own.
    """
    if repeat.core_w is None or repeat.harness.value is None or _read_bytes(repeat):
        return None
    operations = repeat.operations
    own_j = repeat.harness.value * operations.counts()[kind] / len(operations)
    least_j, most_j = (times * repeat.core_w * _worked_s(operations, kind) for times in PROCESSOR)
    return _Bounds(own_j + least_j, own_j + most_j)


def _worked_s(operations: OperationTable, kind: str) -> float:
    """Time for which the operations of a kind worked; what is far above their median is a wait [s]."""
    duration_ns = operations.duration_ns[operations.of_kind(kind)]
    return float(np.minimum(duration_ns, WORKS_TIMES * median_ns(duration_ns)).sum()) * 1e-9


def _read_bytes(repeat: Repeat) -> float:
    """Bytes that came from the medium during the run; 0 if its counters are not known."""
    samples = repeat.samples
    return 0.0 if isinstance(samples, Quantity) else samples.grown("device_read_bytes", settle=False)


def _with_rest(reading: Mapping[str, Quantity], rest: Quantity) -> dict[str, Quantity]:
    """Kinds that only read, with their part of what else the run drew, as the tail of a medium that was read.

    The rest is divided as their own energies are. Each part may be anything from none to twice that.
    """
    total_j = math.fsum(map(float, reading.values()))
    shares = {}
    for kind, share in reading.items():
        part = float(share) / total_j if total_j > 0.0 else 1.0 / len(reading)
        moved_j = part * float(rest)
        u_j = math.hypot(share.standard_u, part * rest.standard_u, moved_j / math.sqrt(3.0))
        shares[kind] = Quantity.from_standard(float(share) + moved_j, u_j, "J")
    return shares


def _by_bytes(repeat: Repeat, left: Quantity, writing: Sequence[str]) -> dict[str, Quantity]:
    """Several kinds that write: what each draws itself if that is known, and the rest in proportion to its bytes."""
    attribution = repeat.attribution
    known = isinstance(attribution, Attribution) and all(
        kind in attribution.operations and kind not in attribution.blind for kind in writing
    )
    own = attribution.operations if isinstance(attribution, Attribution) and known else {}
    own_j = {kind: float(own[kind]) if known else 0.0 for kind in writing}
    moved = repeat.operations.bytes_by_kind()
    sizes = {kind: float(moved[kind]) for kind in writing}
    if not any(sizes.values()):
        sizes = {kind: float(repeat.operations.counts()[kind]) for kind in writing}
    rest_j = float(left) - math.fsum(own_j.values())
    total = sum(sizes.values())
    return {kind: unstated(own_j[kind] + rest_j * sizes[kind] / total, "J", BY_BYTES, Cause.RULE) for kind in writing}


def _figure(share: Quantity, repeat: Repeat, kind: str) -> Quantity:
    """The energy of one operation [J], with the errors that other runs of the same sensor share."""
    count = repeat.operations.counts().get(kind, 0)
    if not count:
        return _absent(kind)
    if share.u is None:
        return share.scale(1.0 / count)
    return replace(share, shared=_shared_j(share, repeat)).because(None).scale(1.0 / count)


def _absent(kind: str) -> Quantity:
    return missing(f"no {kind} in this repeat", "J")


def _shared_j(share: Quantity, repeat: Repeat) -> Mapping[str, float]:
    """Contributions to a share that other runs of the same sensor share [J]; empty with a sensor of the medium."""
    marginal, whole = repeat.energy.marginal, _whole(repeat)
    if marginal is None or repeat.medium or not whole.shared.get(SCALE):
        return {}
    part = share.shared.get(SCALE, 0.0) / whole.shared[SCALE]
    return {name: part * u_j for name, u_j in marginal.budget.shared.items()}


def _later(told: Sequence[Mapping[str, Quantity]], repeats: Sequence[Repeat], kind: str) -> Quantity:
    """Energy that one operation of a kind causes later: all told, less what it draws while it is carried out [J].

    Reads beside writes cause nothing; if nothing is written, they have the medium's tail.
    """
    if kind in READS and any(other not in READS for repeat in repeats for other in repeat.operations.counts()):
        return exact(0.0, "J")
    figures = []
    for shares, repeat in zip(told, repeats, strict=True):
        own, whole = _own(repeat, kind), shares.get(kind, _absent(kind))
        lacking = next((share for share in (own, whole) if share.value is None), None)
        if lacking:
            figures.append(lacking)
        elif whole.u is None:
            figures.append(_figure(replace(whole, value=float(whole) - float(own)), repeat, kind))
        else:
            figures.append(_figure(Quantity.sum_of([whole, -own]), repeat, kind))
    return over_repeats(figures)


def _own(repeat: Repeat, kind: str) -> Quantity:
    """Energy while operations of a kind are carried out, if it is identifiable [J]."""
    if kind in READS and kind in repeat.operations.counts():
        whole = _whole(repeat)
        return whole if whole.value is None else _reads(repeat, kind)
    if isinstance(repeat.attribution, Quantity):
        return repeat.attribution
    share = repeat.attribution.operations.get(kind, _absent(kind))
    return share.absent("J") if share.reason else share


def _harness(repeat: Repeat) -> Quantity:
    """The loader's own part of an operation [J]."""
    return repeat.harness.over(len(repeat.operations), "no operation was logged")
