"""A simulated campaign's conclusions against the simulator's truth: who wins, by what ratio, do the intervals hold it.

    .venv/bin/python host/validation/campaign_truth.py runs/three-engines --by db,storage

From the records alone. Each axis of --by is compared as compare.py does it. The true value of a cell is the mean, over
the same repeats, of what the simulator says of each record (its exact course of energy over the record's own phases);
the true ratio is that of two such means. A stated interval holds how much repeats differ, too, which the true ratio of
the same repeats does not need: so the pairs of one block each are held against their own truth, by what the two records
state themselves. Then every figure of every record against its truth; all records of one seed
have one simulated meter, whose gain is off by the same in all of them. SIMULATED. Exit status 1 where a conclusion
names the wrong one, or where fewer than 90 of 100 ratios are held.
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

HOST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HOST)]

from opjoule.comparison.compared_run import ComparedRun  # noqa: E402  # path set above
from opjoule.comparison.contrasts import Compared, Contrast, Question, compare  # noqa: E402
from opjoule.comparison.index import gather  # noqa: E402
from opjoule.energy.comparison import ratio  # noqa: E402
from opjoule.opened.rounding import with_limits  # noqa: E402
from opjoule.record.run_record import RunRecord  # noqa: E402
from opjoule.simulation.part_course import PartCourse  # noqa: E402
from opjoule.simulation.supply import COURSE  # noqa: E402
from opjoule.simulation.truth_line import SHOWN, true_figures  # noqa: E402

HELD_LEAST: Final = 0.90


@cache
def truth_of(place: Path) -> dict[str, float]:
    """The true figures of a record, by the key of result.json."""
    result = json.loads((place / "result.json").read_text())
    phases = RunRecord.open(place).run.phases
    return true_figures(PartCourse.read(place / COURSE), phases, result["operations"]["value"])


@dataclass(frozen=True)
class Checked:
    """One comparison beside its truth."""

    contrast: Contrast
    true_ratio: float

    @property
    def holds(self) -> bool:
        """Is the true ratio in the stated interval?"""
        low, high = self.contrast.limits
        return low <= self.true_ratio <= high

    @property
    def is_wrong(self) -> bool:
        """Was one found to be more that is not?"""
        above = self.contrast.side_a.value > self.contrast.side_b.value
        return self.contrast.differs and above is not (self.true_ratio > 1)

    def row(self) -> str:
        """A line of the table."""
        contrast, stated = self.contrast, self.contrast.ratio
        said = "not told apart" if not contrast.differs else f"{contrast.a} more"
        shown = with_limits(stated.value, contrast.limits) if stated else "none"
        held = "holds" if self.holds else "**does not hold**"
        cells = [
            *contrast.stratum.values(),
            f"{contrast.a} / {contrast.b}",
            shown,
            f"{self.true_ratio:.4g}",
            held,
            said,
        ]
        return f"| {' | '.join(cells)} |"


def checked(compared: Compared) -> Iterator[Checked]:
    """Every comparison with its truth."""

    def true_mean(contrast: Contrast, name: str) -> float:
        [group] = [
            group for group in compared.groups if (group.stratum, group.name) == (contrast.stratum, name)
        ]
        return fmean(truth_of(run.place)[contrast.quantity.key] for run in group.runs)

    for contrast in compared.contrasts:
        yield Checked(contrast, true_mean(contrast, contrast.a) / true_mean(contrast, contrast.b))


def pairs_of(compared: Compared) -> Iterator[tuple[float, float, float]]:
    """(stated ratio, its expanded uncertainty, true ratio) of every two single records of one comparison and block."""
    for contrast in compared.contrasts:
        a, b = (_by_block(compared, contrast, name) for name in (contrast.a, contrast.b))
        for block in sorted(a.keys() & b.keys()):
            key, runs = contrast.quantity.key, (a[block], b[block])
            estimate = ratio(*(run.side(contrast.quantity) for run in runs))
            true_a, true_b = (truth_of(run.place)[key] for run in runs)
            yield estimate.value, estimate.u, true_a / true_b


def _by_block(compared: Compared, contrast: Contrast, name: str) -> dict[int, ComparedRun]:
    [group] = [group for group in compared.groups if (group.stratum, group.name) == (contrast.stratum, name)]
    return {int(run.asked.get("block") or 0): run for run in group.runs}


def tell_ratios(runs: Sequence[ComparedRun], axis: str, metric: str) -> bool:
    """Prints one axis' comparisons; True where they are as they should be."""
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
        f"\n{held} of {len(checks)} intervals hold the true ratio (median ±{100 * median(widths):.2g} %); told apart "
        f"{len(apart)}, {wrong} of them the wrong way round"
    )
    off = [abs(check.contrast.ratio.value / check.true_ratio - 1) for check in checks if check.contrast.ratio]
    single = list(pairs_of(compared))
    alone = sum(abs(value - true) <= u for value, u, true in single)
    print(
        f"off by {100 * median(off):.2g} % (median), {100 * max(off):.2g} % at most; of the {len(single)} pairs of "
        f"single records of one block {alone} hold their own truth (median "
        f"±{100 * median(u / value for value, u, _ in single):.2g} %)"
    )
    return not wrong and held >= HELD_LEAST * len(checks) and alone >= HELD_LEAST * len(single)


def tell_records(runs: Sequence[ComparedRun]) -> None:
    """Prints how many records hold the truth, figure by figure."""
    print(
        "\n| figure of one record | hold the truth | median error, % | median stated, % |\n|---|---|---|---|"
    )
    for key, about in SHOWN.items():
        pairs = [
            (run.numbers[key]["value"], run.numbers[key]["u"], truth_of(run.place)[key])
            for run in runs
            if run.numbers.get(key, {}).get("u") is not None
        ]
        if not pairs:
            continue
        held = sum(abs(value - true) <= u for value, u, true in pairs)
        errors = [100 * abs(value / true - 1) for value, _, true in pairs if true]
        stated = [100 * u / abs(value) for value, u, _ in pairs if value]
        print(f"| {about} | {held} of {len(pairs)} | {median(errors):.2g} | {median(stated):.2g} |")


def main() -> int:
    """Prints everything; 1 where it is not as it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", help="a campaign's folder, or records")
    parser.add_argument(
        "--by", default="db,storage", help="axes, each compared on its own (default: db,storage)"
    )
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
