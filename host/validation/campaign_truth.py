"""Compares a simulated campaign's conclusions with the simulator's truth: the order, the ratios, their intervals.

    .venv/bin/python host/validation/campaign_truth.py runs/three-engines --by db,storage

SIMULATED. Only the records are read. Each axis of --by is compared as compare.py does it. The true value of a cell is
the mean over its repeats of each record's true value, which comes from the simulator's exact course of energy over the
record's own phases. The true ratio is the ratio of two such means.

The stated interval of a ratio also covers the differences between repeats, which the true ratio of the same repeats
does not contain. Pairs of single records of one block are therefore compared with their own true ratio as well, with
the uncertainties that the two records state.

Every figure of every record is then compared with its true value. All records of one seed have the same simulated
meter, with the same gain error. Exit status 1 if a conclusion names the wrong side, or if fewer than 90 of 100 ratios
lie within their intervals.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Final

from opjoule.bench.simulation.parts import COURSE, PartCourse
from opjoule.bench.simulation.truth_line import SHOWN, true_figures
from opjoule.energy.comparison import ratio
from opjoule.results.comparison.cell import Group
from opjoule.results.comparison.compared_run import ComparedRun
from opjoule.results.comparison.contrasts import Compared, Contrast, Question, compare
from opjoule.results.comparison.index import gather
from opjoule.results.rounding import with_limits
from opjoule.runs.record.run_record import RunRecord

HELD_LEAST: Final = 0.90


@cache
def truth_of(place: Path) -> dict[str, float]:
    """The true figures of a record, by the key of result.json."""
    result = json.loads((place / "result.json").read_text())
    phases = RunRecord.open(place).run.phases
    return true_figures(PartCourse.read(place / COURSE), phases, result["operations"]["value"])


@dataclass(frozen=True)
class Checked:
    """One comparison and its true ratio."""

    contrast: Contrast
    true_ratio: float

    @property
    def holds(self) -> bool:
        """True if the true ratio lies within the stated interval."""
        low, high = self.contrast.limits
        return low <= self.true_ratio <= high

    @property
    def is_wrong(self) -> bool:
        """True if the comparison found a difference in the wrong direction."""
        above = self.contrast.side_a.value > self.contrast.side_b.value
        return self.contrast.differs and above is not (self.true_ratio > 1)

    def row(self) -> str:
        """Row of the table."""
        contrast, stated = self.contrast, self.contrast.ratio
        said = "no difference" if not contrast.differs else f"{contrast.a.name} more"
        shown = with_limits(stated.value, contrast.limits) if stated else "none"
        held = "holds" if self.holds else "**does not hold**"
        cells = [
            *contrast.stratum.values(),
            f"{contrast.a.name} / {contrast.b.name}",
            shown,
            f"{self.true_ratio:.4g}",
            held,
            said,
        ]
        return f"| {' | '.join(cells)} |"


def checked(compared: Compared) -> Iterator[Checked]:
    """Yields every comparison with its true ratio."""

    def true_mean(contrast: Contrast, group: Group) -> float:
        return fmean(truth_of(run.place)[contrast.quantity.key] for run in group.runs)

    for contrast in compared.answering:
        yield Checked(contrast, true_mean(contrast, contrast.a) / true_mean(contrast, contrast.b))


def pairs_of(compared: Compared) -> Iterator[tuple[float, float, float]]:
    """Yields (stated ratio, its expanded uncertainty, true ratio) for the two records of each block of a comparison."""
    for contrast in compared.answering:
        a, b = _by_block(contrast.a), _by_block(contrast.b)
        for block in sorted(a.keys() & b.keys()):
            key, runs = contrast.quantity.key, (a[block], b[block])
            estimate = ratio(*(run.side(contrast.quantity) for run in runs))
            true_a, true_b = (truth_of(run.place)[key] for run in runs)
            yield estimate.value, estimate.u, true_a / true_b


def _by_block(group: Group) -> dict[int, ComparedRun]:
    return {int(run.asked.get("block") or 0): run for run in group.runs}


def tell_ratios(runs: Sequence[ComparedRun], axis: str, metric: str) -> bool:
    """Prints one axis' comparisons; True if none is wrong and enough intervals contain their true ratios."""
    compared = compare(runs, Question((axis,), (metric,)))
    checks = list(checked(compared))
    print(f"\nby {axis}, {metric} (SIMULATED), {len(runs)} records\n")
    print(f"| {' | '.join([*compared.groups[0].stratum, 'ratio', 'stated', 'true', 'interval', 'found'])} |")
    print("|---" * (len(compared.groups[0].stratum) + 5) + "|")
    for check in checks:
        print(check.row())
    held, apart = (
        sum(check.holds for check in checks),
        [check for check in checks if check.contrast.differs],
    )
    wrong = sum(check.is_wrong for check in checks)
    widths = [
        (high - low) / 2 / check.contrast.ratio.value
        for check in checks
        if check.contrast.ratio
        for low, high in [check.contrast.limits]
    ]
    print(
        f"\n{held} of {len(checks)} intervals hold the true ratio (median ±{100 * median(widths):.2g} %); "
        f"differences found: {len(apart)}, {wrong} of them the wrong way round"
    )
    off = [abs(check.contrast.ratio.value / check.true_ratio - 1) for check in checks if check.contrast.ratio]
    single = list(pairs_of(compared))
    alone = sum(abs(value - true) <= u for value, u, true in single)
    print(
        f"off by {100 * median(off):.2g} % (median), {100 * max(off):.2g} % at most; of {len(single)} pairs of "
        f"single records of one block, {alone} hold their own true ratio (median "
        f"±{100 * median(u / value for value, u, _ in single):.2g} %)"
    )
    return not wrong and held >= HELD_LEAST * len(checks) and alone >= HELD_LEAST * len(single)


def tell_records(runs: Sequence[ComparedRun]) -> None:
    """Prints for each figure how many records' intervals contain the true value."""
    print("\n| figure of one record | held | median error, % | median stated, % |\n|---|---|---|---|")
    for key, about in SHOWN.items():
        pairs = [
            (figure.value, figure.u, truth_of(run.place)[key])
            for run in runs
            if (figure := run.number(key)).has_interval
        ]
        if not pairs:
            continue
        held = sum(abs(value - true) <= u for value, u, true in pairs)
        errors = [100 * abs(value / true - 1) for value, _, true in pairs if true]
        stated = [100 * u / abs(value) for value, u, _ in pairs if value]
        print(f"| {about} | {held} of {len(pairs)} | {median(errors):.2g} | {median(stated):.2g} |")


def main() -> int:
    """Prints all comparisons; exit status 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="a campaign's folder, or records")
    parser.add_argument("--by", default="db,storage", help="axes, each compared on its own (default: db,storage)")
    parser.add_argument("--metric", default="marginal_energy_per_operation_j")
    options = parser.parse_args()
    runs, left_out = gather(options.runs)
    for line in left_out:
        print(f"left out: {line}", file=sys.stderr)
    fine = [tell_ratios(runs, axis, options.metric) for axis in options.by.split(",")]
    tell_records(runs)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
