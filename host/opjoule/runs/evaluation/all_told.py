"""What an operation costs above idle with all that it causes, by kind, from the energies of whole runs.

A run and its settle contain everything that its operations cause. Reads cause nothing later, so what they leave of the
whole belongs to the kind that writes: its syncs, flushes, compactions, write-back and tail need not be told apart. What
the reads draw is known from the windows of the runs, and from the time for which they work. docs/method/attribution.md,
"All told".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from opjoule.attribution.budgets import SCALE, SensorBudget
from opjoule.attribution.shares import Attribution, Share
from opjoule.base.units import COVERAGE_FACTOR, Missing, Quantity, exact
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.runs.evaluation.quantities.attribution import READS
from opjoule.runs.evaluation.quantities.definition import ALL_TOLD, told_path
from opjoule.runs.evaluation.quantities.figures import Figure, Figures, over_repeats
from opjoule.runs.evaluation.quantities.repeat import NO_IDLE, Repeat

PROCESSOR: Final = (0.25, 2.5)
"""Bounds of an operation's power while it works, over that of a processor that runs the loader without a database."""
WORKS_TIMES: Final = 3.0
"""An operation that takes longer than so many times the median of its kind waits for the rest."""
BY_BYTES: Final = "divided among the kinds that write, in proportion to their bytes: a rule, not a measurement"


def told_figures(repeats: Sequence[Repeat]) -> list[Figures]:
    """What an operation of each kind costs all told, by its path in result.json, for each repeat."""
    kinds = OperationTable.concatenate([repeat.operations for repeat in repeats]).counts()
    told: list[Figures] = []
    for repeat in repeats:
        shares = all_told(repeat)
        told.append({told_path(kind): _figure(shares.get(kind, _absent(kind)), repeat, kind) for kind in kinds})
    return told


def by_operation(repeats: Sequence[Repeat]) -> dict[str, Any]:
    """Counts and energies by kind of operation, means over the repeats."""
    counts = OperationTable.concatenate([repeat.operations for repeat in repeats]).counts()
    told = [all_told(repeat) for repeat in repeats]
    figures = told_figures(repeats)
    entries = {}
    for kind, count in counts.items():
        pairs = zip(repeats, told, strict=True)
        energy = over_repeats([_figure(_own(repeat, kind, shares), repeat, kind) for repeat, shares in pairs])
        entries[kind] = {
            "count": exact(count / len(repeats), "1"),
            ALL_TOLD: over_repeats([of_repeat[told_path(kind)] for of_repeat in figures]),
            "energy_per_operation_j": energy,
            "background_energy_per_operation_j": _later(told, repeats, kind),
            "harness_energy_per_operation_j": over_repeats([_harness(repeat) for repeat in repeats]),
            "identifiable": not isinstance(energy, Missing),
        }
    return entries


def all_told(repeat: Repeat) -> Mapping[str, Share | Missing]:
    """Energy above idle of all operations of each kind in one repeat, with all that they cause [J].

    The shares add up to the energy of run and settle above idle. Missing without idle power, or if what the reads draw
    is not known.
    """
    whole = _whole(repeat)
    counts = repeat.operations.counts()
    if isinstance(whole, Missing) or len(counts) == 1:
        return dict.fromkeys(counts, whole)
    reading = {kind: _reads(repeat, kind) for kind in counts if kind in READS}
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
    return SensorBudget.of([marginal]).whole


def _reads(repeat: Repeat, kind: str) -> Share | Missing:
    """Energy of the operations of a kind that only reads.

    The windows of the repeat and the time for which the operations worked are two independent estimates: the mean is
    weighted by their variances. If they contradict each other, the interval reaches both.
    """
    attribution = repeat.attribution
    found = attribution.operations.get(kind) if isinstance(attribution, Attribution) else None
    known = [share for share in (found, _by_time(repeat, kind)) if share and share.has_interval]
    if not known:
        why = found.unidentified if found else getattr(attribution, "reason", "")
        return Missing(why or f"what a {kind} draws was not found", "J")
    if len(known) == 1:
        return replace(known[0], unidentified="")
    windows, time = known
    weight = time.standard_u_j**2 / (windows.standard_u_j**2 + time.standard_u_j**2)
    mean = Share.sum_of([windows.scaled(weight), time.scaled(1.0 - weight)])
    off_j = abs(windows.energy_j - time.energy_j)
    if off_j > COVERAGE_FACTOR * math.hypot(windows.standard_u_j, time.standard_u_j):
        mean = replace(mean, standard_u_j=math.hypot(mean.standard_u_j, off_j / math.sqrt(3.0)))
    return replace(mean, unidentified="")


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
        kind: Share(own_j[kind] + rest_j * sizes[kind] / total, 0.0, BY_BYTES, has_interval=False) for kind in writing
    }


def _figure(share: Share | Missing, repeat: Repeat, kind: str) -> Figure | Missing:
    """The energy of one operation [J]."""
    count = repeat.operations.counts().get(kind, 0)
    if not count:
        return _absent(kind)
    if isinstance(share, Missing):
        return share
    if not share.has_interval:
        return Figure(share.energy_j / count, "J", None, share.unidentified)
    shared = {name: u_j / count for name, u_j in _shared_j(share, repeat).items()}
    return Figure(share.energy_j / count, "J", share.standard_u_j / count, shared=shared)


def _absent(kind: str) -> Missing:
    return Missing(f"no {kind} in this repeat", "J")


def _shared_j(share: Share, repeat: Repeat) -> Mapping[str, float]:
    """Contributions to a share that other runs of the same sensor share [J]; empty with a sensor of the medium."""
    marginal, whole = repeat.energy.marginal, _whole(repeat)
    if marginal is None or repeat.storage or isinstance(whole, Missing) or not whole.in_common_j.get(SCALE):
        return {}
    part = share.in_common_j.get(SCALE, 0.0) / whole.in_common_j[SCALE]
    return {name: part * u_j for name, u_j in marginal.budget.shared.items()}


def _later(told: Sequence[Mapping[str, Share | Missing]], repeats: Sequence[Repeat], kind: str) -> Quantity:
    """Energy that one operation of a kind causes later: all told, less what it draws while it is carried out [J]."""
    if kind in READS:
        return exact(0.0, "J")
    figures: list[Figure | Missing] = []
    for shares, repeat in zip(told, repeats, strict=True):
        own = _own(repeat, kind, shares)
        whole = shares.get(kind, _absent(kind))
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
        return told.get(kind, _absent(kind))
    if isinstance(repeat.attribution, Missing):
        return repeat.attribution
    share = repeat.attribution.operations.get(kind)
    if share is None:
        return _absent(kind)
    return Missing(share.unidentified, "J") if share.unidentified else share


def _harness(repeat: Repeat) -> Figure | Missing:
    """The loader's own part of an operation [J]."""
    count = len(repeat.operations)
    if isinstance(repeat.harness, Missing) or not count:
        return repeat.harness if isinstance(repeat.harness, Missing) else Missing("no operation was logged", "J")
    return repeat.harness.scale(1.0 / count)
