"""In how many cells the same system is best as in the figures that a study's paper prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from opjoule.results.comparison.study.published import Winner, winners
from opjoule.results.comparison.study.rows import Place, StudyTable
from opjoule.results.comparison.study.table import ONE_RUN, best_systems
from opjoule.runs.record.run import Run

RECORDS: Final = "records"
"""The count by which cells are counted apart."""


@dataclass(frozen=True)
class SameWinners:
    """Comparison of one figure with the records of one count, in cells that differ only in the figure's other axes."""

    figure: str
    place: Place
    """The count, and the axes that the figure does not have."""
    by_phase: Mapping[str, tuple[int, int]]
    """Phase -> number of cells with the same best system, number of cells compared."""
    single: bool
    """Whether the best of a cell is that of single runs."""


def same_winners(study: StudyTable, printed: Sequence[Winner]) -> list[SameWinners]:
    """The comparisons of all figures with a study's records, in the figures' order."""
    found: dict[tuple[str, Place], dict[str, list[tuple[bool, bool]]]] = {}
    bests = best_systems(study)
    for winner in printed:
        for best in bests:
            if winner.is_of(best.measure, best.phase, dict(best.place)):
                others = tuple((axis, value) for axis, value in best.place if axis not in winner.cell)
                key = winner.figure, ((RECORDS, winner.cell[RECORDS]), *others)
                cells = found.setdefault(key, {}).setdefault(winner.phase, [])
                cells.append((best.system == winner.system, best.single))
    return [
        SameWinners(
            figure,
            place,
            {phase: (sum(same for same, _ in cells), len(cells)) for phase, cells in phases.items()},
            any(single for cells in phases.values() for _, single in cells),
        )
        for (figure, place), phases in found.items()
    ]


def same_winners_table(study: StudyTable) -> Table | None:
    """A row for each figure and count, a column for each phase; None if the study prints no winners."""
    compared = same_winners(study, winners(study.name))
    if not compared:
        return None
    phases = [phase for phase in study.phases if any(phase in part.by_phase for part in compared)]
    subjects = ", ".join(sorted({_rig(answer.run) for cell in study.runs for answer in cell}))
    mark = " (SIMULATED)" if study.simulated else ""
    title = f"cells with the same best system as the paper's, on {subjects}{mark}"
    table = Table("figure", "here", *phases, "all", title=title, title_justify="left", box=None)
    for part in compared:
        single = f" {ONE_RUN}" if part.single else ""
        counts = [part.by_phase.get(phase) for phase in phases]
        total = [sum(numbers) for numbers in zip(*filter(None, counts), strict=True)]
        words = [f"{same} of {cells}" if cells else "-" for same, cells in (count or (0, 0) for count in counts)]
        here = ", ".join(f"{value} {axis}" if axis == RECORDS else value for axis, value in part.place)
        table.add_row(part.figure, here + single, *words, f"{total[0]} of {total[1]}")
    return table


def _rig(run: Run) -> str:
    """Board and medium of a run."""
    return ", ".join(filter(None, (run.asked.device, run.found.storage or run.asked.storage)))
