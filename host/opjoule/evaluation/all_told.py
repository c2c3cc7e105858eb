"""What an operation costs above idle with all that it causes, by kind, from the energies of whole runs.

A run and its settle contain everything that its operations cause. Reads cause nothing later, so what they leave of the
whole belongs to the kind that writes: its syncs, flushes, compactions, write-back and tail need not be told apart. What
the reads draw is known from a run of reads on their own. docs/method/attribution.md, "All told".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from opjoule.attribution.activities import background
from opjoule.attribution.budgets import SensorBudget
from opjoule.attribution.shares import Attribution, Share
from opjoule.energy.baseline import MarginalEnergy
from opjoule.evaluation.quantities.attribution import READS
from opjoule.evaluation.quantities.figures import Figure, over_repeats
from opjoule.evaluation.quantities.repeat import NO_IDLE, Repeat
from opjoule.operations.operation_table import OperationTable
from opjoule.record.phases import Phase
from opjoule.units import COVERAGE_FACTOR, Missing, Quantity, exact

PROCESSOR: Final = (0.25, 2.5)
"""Bounds of an operation's power while it works, over that of a processor that runs the loader without a database."""
LONGER: Final = (0.0, 1.2)
"""The same bounds for the time that an operation takes in addition beside others. Assumed: a processor that waits for
memory draws about as much as one that computes, and an operation that waits off the processor draws nothing."""
SHORTEST_S: Final = 0.5
"""Shortest stretch of reads on their own that counts [s]."""
TAIL_S: Final = 1.0
"""Time for which a medium may draw more after it was written to [s]; simulation/models.toml has sources."""
WORKS_TIMES: Final = 3.0
"""An operation that takes longer than so many times the median of its kind waits for the rest."""
BY_BYTES: Final = (
    "divided among the kinds that write, in proportion to their bytes: a rule, not a measurement"
)


@dataclass(frozen=True)
class ReadsApart:
    """The longest stretch of a run of the workload's reads on their own in which the engine does nothing else."""

    above_idle: Share
    operations: OperationTable

    @classmethod
    def of(cls, marginal: MarginalEnergy, operations: OperationTable) -> Self:
        """Its operations, of which there are some, and their energy above idle."""
        whole = SensorBudget.of([marginal]).whole
        scale = {"scale": whole.in_common_j["scale"]}  # idle power and noise are those of this run alone
        return cls(replace(whole, in_common_j=scale), operations)

    def energy_in(self, repeat: Repeat, kind: str) -> Share | None:
        """Energy of a kind's operations in a repeat; None if it did not run on its own.

        Beside writes, an operation may take longer: colder caches, more files to look into. The power of that time is
        between the bounds of LONGER, a rectangular distribution (JCGM 100:2008, 4.3.7).
        """
        counts = self.operations.counts()
        if kind not in counts:
            return None
        count = repeat.operations.counts()[kind]
        # Kinds on their own ran side by side: their shares of the energy are those of their time.
        worked_s = {name: _worked_s(self.operations, name) for name in counts}
        part = worked_s[kind] / sum(worked_s.values()) * count / counts[kind]
        longer_s = _worked_s(repeat.operations, kind) - worked_s[kind] * count / counts[kind]
        core_w = repeat.core_w  # without the harness, the power of the reads themselves
        if core_w is None:
            core_w = self.above_idle.energy_j / sum(worked_s.values())
        least_j, most_j = (times * core_w * longer_s for times in LONGER)
        own_u_j = abs(most_j - least_j) / math.sqrt(12.0)
        alone = self.above_idle.scaled(part)
        more = Share((least_j + most_j) / 2, own_u_j)
        return Share.sum_of([alone, more])


def quiet_part(reads: Phase, events: pa.Table) -> Phase | None:
    """The longest part of a phase without flush, compaction or sync, or the medium's tail after one.

    None if no part is long enough. An engine that was written to before may merge files while it is only read.
    """
    start_ns, end_ns = reads.start_board_ns, reads.end_board_ns
    works = [
        interval
        for intervals in background(events).values()
        for interval in zip(intervals.start_ns.tolist(), intervals.end_ns.tolist(), strict=True)
    ]
    quiet_ns, at_ns = (start_ns, start_ns), start_ns
    for begin_ns, finish_ns in sorted([*works, (end_ns, end_ns)]):
        if min(begin_ns, end_ns) - at_ns > quiet_ns[1] - quiet_ns[0]:
            quiet_ns = at_ns, min(begin_ns, end_ns)
        at_ns = max(at_ns, finish_ns + round(TAIL_S * 1e9))
    if quiet_ns[1] - quiet_ns[0] < SHORTEST_S * 1e9:
        return None
    return replace(reads, start_board_ns=quiet_ns[0], end_board_ns=quiet_ns[1])


def by_operation(repeats: Sequence[Repeat], apart: ReadsApart | None) -> dict[str, Any]:
    """Counts and energies by kind of operation, means over the repeats; `apart`: the reads on their own."""
    counts = OperationTable.concatenate([repeat.operations for repeat in repeats]).counts()
    told = [all_told(repeat, apart) for repeat in repeats]
    entries = {}
    for kind, count in counts.items():
        pairs = zip(repeats, told, strict=True)
        energy = over_repeats([_figure(_own(repeat, kind, shares), repeat, kind) for repeat, shares in pairs])
        entries[kind] = {
            "count": exact(count / len(repeats), "1"),
            "all_told_energy_per_operation_j": _per_operation(told, repeats, kind),
            "energy_per_operation_j": energy,
            "background_energy_per_operation_j": _later(told, repeats, kind),
            "harness_energy_per_operation_j": over_repeats([_harness(repeat) for repeat in repeats]),
            "identifiable": not isinstance(energy, Missing),
        }
    return entries


def all_told(repeat: Repeat, apart: ReadsApart | None = None) -> Mapping[str, Share | Missing]:
    """Energy above idle of all operations of each kind in one repeat, with all that they cause [J].

    The shares add up to the energy of run and settle above idle. Missing without idle power, or if what the reads draw
    is not known.
    """
    whole = _whole(repeat)
    counts = repeat.operations.counts()
    if isinstance(whole, Missing) or len(counts) == 1:
        return dict.fromkeys(counts, whole)
    reading = {kind: _reads(repeat, kind, apart) for kind in counts if kind in READS}
    writing = [kind for kind in counts if kind not in READS]
    if unknown := next((share for share in reading.values() if isinstance(share, Missing)), None):
        return {**reading, **dict.fromkeys(writing, unknown)}
    known = {kind: share for kind, share in reading.items() if isinstance(share, Share)}
    left = Share.sum_of([whole, *(-share for share in known.values())])
    if not writing:
        return _with_rest(known, left)
    if len(writing) == 1:
        return {**known, writing[0]: left}
    return {**known, **_by_bytes(repeat, left, writing)}


def _whole(repeat: Repeat) -> Share | Missing:
    """Energy of run and settle above idle; a medium with its own supply and sensor is in it."""
    if isinstance(repeat.attribution, Attribution):
        return repeat.attribution.whole
    marginal = repeat.energy.marginal
    if marginal is None:
        return Missing(NO_IDLE, "J")
    return Share(marginal.energy.value, marginal.budget.standard_u)


def _reads(repeat: Repeat, kind: str, apart: ReadsApart | None) -> Share | Missing:
    """Energy of the operations of a kind that only reads: of all that is known of it, the narrowest.

    Known are the reads on their own, the windows of the repeat, and bounds from the time for which the operations
    worked. If the first two contradict each other, the interval reaches both.
    """
    attribution = repeat.attribution
    found = attribution.operations.get(kind) if isinstance(attribution, Attribution) else None
    alone = apart.energy_in(repeat, kind) if apart else None
    measured = [share for share in (alone, found) if share and share.has_interval]
    known = measured or [bounds for bounds in [_by_time(repeat, kind)] if bounds]
    if not known:
        why = found.unidentified if found else getattr(attribution, "reason", "")
        return Missing(why or f"what a {kind} draws was not found", "J")
    best = min(known, key=lambda share: share.standard_u_j)
    for other in known:
        apart_j = abs(other.energy_j - best.energy_j)
        if apart_j > COVERAGE_FACTOR * math.hypot(other.standard_u_j, best.standard_u_j):
            best = replace(best, standard_u_j=math.hypot(best.standard_u_j, apart_j / math.sqrt(3.0)))
    return replace(best, unidentified="")


def _by_time(repeat: Repeat, kind: str) -> Share | None:
    """Bounds of the energy of a kind from the time for which its operations worked, and the loader's own part.

    None if they read from the medium, which has a power of its own.
    """
    if repeat.core_w is None or isinstance(repeat.harness, Missing) or _read_bytes(repeat):
        return None
    operations = repeat.operations
    own_j = repeat.harness.value * operations.counts()[kind] / len(operations)
    least_j, most_j = (times * repeat.core_w * _worked_s(operations, kind) for times in PROCESSOR)
    return Share(own_j + (least_j + most_j) / 2, (most_j - least_j) / math.sqrt(12.0))


def _worked_s(operations: OperationTable, kind: str) -> float:
    """Time for which the operations of a kind worked; what is far above their median is a wait [s]."""
    duration_ns = operations.duration_ns[operations.of_kind(kind)]
    return float(np.minimum(duration_ns, WORKS_TIMES * np.median(duration_ns)).sum()) * 1e-9


def _read_bytes(repeat: Repeat) -> float:
    """Bytes that came from the medium during the run; 0 if its counters are not known."""
    samples = repeat.samples
    return 0.0 if isinstance(samples, Missing) else samples.grown("device_read_bytes", settle=False)


def _with_rest(reading: Mapping[str, Share], rest: Share) -> dict[str, Share | Missing]:
    """Kinds that only read, with their part of what else the run drew, as the tail of a medium that was read.

    The rest is divided as their own energies are. Each part may be anything from none to twice that.
    """
    total_j = math.fsum(share.energy_j for share in reading.values())
    shares: dict[str, Share | Missing] = {}
    for kind, share in reading.items():
        part = share.energy_j / total_j if total_j > 0.0 else 1.0 / len(reading)
        moved_j = part * rest.energy_j
        u_j = math.hypot(share.standard_u_j, part * rest.standard_u_j, moved_j / math.sqrt(3.0))
        shares[kind] = Share(share.energy_j + moved_j, u_j)
    return shares


def _by_bytes(repeat: Repeat, left: Share, writing: Sequence[str]) -> dict[str, Share | Missing]:
    """Several kinds that write: what each draws itself if that is known, and the rest in proportion to its bytes."""
    attribution = repeat.attribution
    own = attribution.operations if isinstance(attribution, Attribution) else {}
    known = all(kind in own and own[kind].has_interval for kind in writing)
    own_j = {kind: own[kind].energy_j if known else 0.0 for kind in writing}
    moved = repeat.operations.bytes_by_kind()
    sizes = {kind: float(moved[kind]) for kind in writing}
    if not any(sizes.values()):
        sizes = {kind: float(repeat.operations.counts()[kind]) for kind in writing}
    rest_j = left.energy_j - math.fsum(own_j.values())
    total = sum(sizes.values())
    return {
        kind: Share(own_j[kind] + rest_j * sizes[kind] / total, 0.0, BY_BYTES, has_interval=False)
        for kind in writing
    }


def _figure(share: Share | Missing, repeat: Repeat, kind: str) -> Figure | Missing:
    """The energy of one operation [J]."""
    count = repeat.operations.counts().get(kind, 0)
    if isinstance(share, Missing) or not count:
        return share if isinstance(share, Missing) else Missing(f"no {kind} in this repeat", "J")
    u_j = share.standard_u_j / count if share.has_interval else None
    return Figure(share.energy_j / count, "J", u_j, "" if share.has_interval else share.unidentified)


def _per_operation(
    told: Sequence[Mapping[str, Share | Missing]], repeats: Sequence[Repeat], kind: str
) -> Quantity:
    """Energy of one operation with all that it causes, mean over the repeats [J]."""
    none = Missing(f"no {kind} in this repeat", "J")
    pairs = zip(told, repeats, strict=True)
    return over_repeats([_figure(shares.get(kind, none), repeat, kind) for shares, repeat in pairs])


def _later(told: Sequence[Mapping[str, Share | Missing]], repeats: Sequence[Repeat], kind: str) -> Quantity:
    """Energy that one operation of a kind causes later: all told, less what it draws while it is carried out [J]."""
    if kind in READS:
        return exact(0.0, "J")
    figures: list[Figure | Missing] = []
    for shares, repeat in zip(told, repeats, strict=True):
        own = _own(repeat, kind, shares)
        whole = shares.get(kind, Missing(f"no {kind} in this repeat", "J"))
        if isinstance(own, Missing):
            figures.append(own)
            continue
        if isinstance(whole, Missing):
            figures.append(whole)
            continue
        left = Share.sum_of([whole, -own])
        if not whole.has_interval:
            left = Share(left.energy_j, 0.0, BY_BYTES, has_interval=False)
        figures.append(_figure(left, repeat, kind))
    return over_repeats(figures)


def _own(repeat: Repeat, kind: str, told: Mapping[str, Share | Missing]) -> Share | Missing:
    """Energy while operations of a kind are carried out, if it is identifiable; of reads that is all [J]."""
    if kind in READS:
        return told.get(kind, Missing(f"no {kind} in this repeat", "J"))
    if isinstance(repeat.attribution, Missing):
        return repeat.attribution
    share = repeat.attribution.operations.get(kind)
    if share is None:
        return Missing(f"no {kind} in this repeat", "J")
    return Missing(share.unidentified, "J") if share.unidentified else share


def _harness(repeat: Repeat) -> Figure | Missing:
    """The loader's own part of an operation [J]."""
    count = len(repeat.operations)
    if isinstance(repeat.harness, Missing) or not count:
        return (
            repeat.harness if isinstance(repeat.harness, Missing) else Missing("no operation was logged", "J")
        )
    return repeat.harness.scale(1.0 / count)
