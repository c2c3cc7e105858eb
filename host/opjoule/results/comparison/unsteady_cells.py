"""Notices of cells whose runs differ in their energy, or in what they wrote, by the rules for repeats of one run."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.runs.evaluation.stability import Repeated, scatter, unequal


def in_order_of_measuring(cell: Iterable[object]) -> list[ComparedRun]:
    """The runs of a cell that have been read for a comparison, by their start."""
    runs = [run for run in cell if isinstance(run, ComparedRun)]
    return sorted(runs, key=lambda run: run.started_utc)


def unsteady_lines(runs: Sequence[ComparedRun]) -> list[str]:
    """One line on the energies of a cell's runs, one on their writes, where they are unsteady.

    Args:
        runs: in the order of measuring, by which the lines number them.
    """
    headlines = _headlines(runs)
    lines = [scatter(headlines) if headlines else "", _writes(runs)]
    return [f"{line} (runs in the order of measuring)" for line in lines if line]


def _headlines(runs: Sequence[ComparedRun]) -> Repeated | None:
    """The headline of each run; None if one has no interval."""
    if not runs:
        return None
    headline = runs[0].quantities.headline
    sides = [run.side(headline) for run in runs]
    if not all(side.has_interval for side in sides):
        return None
    own_u = [math.hypot(side.own_u, side.spread_u) for side in sides]
    return Repeated(headline.label, [float(side) for side in sides], own_u, "run")


def _writes(runs: Sequence[ComparedRun]) -> str:
    """The bytes that the runs wrote, if they are unequal for equal numbers of operations."""
    written = [run.number("disk_written_bytes").value for run in runs]
    counts = [run.number("operations").value for run in runs]
    per_operation = [
        of_run / count for of_run, count in zip(written, counts, strict=True) if of_run is not None and count
    ]
    if len(per_operation) < len(runs) or not unequal(per_operation):
        return ""
    usual = fmean(count for count in counts if count)
    amounts = ", ".join(f"{each * usual / 1e6:.3g}" for each in per_operation)
    return (
        f"for equal numbers of operations the runs wrote {amounts} MB to the medium; the energy of each contains what "
        "it wrote"
    )
