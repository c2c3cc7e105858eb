"""Quantities of a command, and their wording: operations are those that the command has marked."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from opjoule.evaluation.quantities.common import COMMON, SENSORS
from opjoule.evaluation.quantities.definition import FIRST, Definition, Quantities, Topic
from opjoule.evaluation.quantities.operations import OPERATIONS
from opjoule.evaluation.wording.wording import Wording
from opjoule.record.groups import ABOVE_IDLE, ENERGY
from opjoule.record.run import Run
from opjoule.studies.definition import SYSTEM, in_words

_OF_A_PHASE: Final = (
    ("energy_j", "J", "energy of a phase that the command marked", (ENERGY,)),
    ("marginal_energy_j", "J", "the same less idle power times the phase's duration", (ENERGY, ABOVE_IDLE)),
    ("duration_s", "s", "its duration", ()),
    ("operations", "1", "operations marked in it", ()),
    ("energy_per_operation_j", "J", "its energy over them", (ENERGY,)),
    ("marginal_energy_per_operation_j", "J", "its energy above idle over them", (ENERGY, ABOVE_IDLE)),
)
_CHANGED: Final[dict[str, dict[str, Any]]] = {
    "marginal_energy_j": {
        "headline": "above idle",
        "compared": True,
        "rank": {"headline": FIRST, "budget": FIRST},
    },
    "peak_memory_bytes": {"meaning": "of the command's processes together"},
    "write_back_energy_j": {
        "headline": "above idle after its end",
        "line": ("settle", "above idle, {settle_s} from its end to rest"),
        "column": "after its end",
    },
}

QUANTITIES: Final = Quantities(
    (
        *Quantities((*COMMON, *OPERATIONS, *SENSORS)).changed(_CHANGED),
        *(
            Definition(
                f"by_phase.*.{key}", unit, Topic.PART, meaning=meaning, rests_on=rests_on, required=False
            )
            for key, unit, meaning, rests_on in _OF_A_PHASE
        ),
    )
)


def _command(run: Run) -> Sequence[str]:
    return run.plan.study.command or run.asked.command or ()


def _subject(run: Run) -> str:
    """The given name, or the program's."""
    return run.plan.study.called or next(iter(_command(run)), "unknown command")


WORDING: Final = Wording(
    QUANTITIES,
    _subject,
    work=lambda run: shlex.join(_command(run)),
    more=lambda run: "a command that does more",
    longer=lambda run, times, run_s, operations: f"let it work {times:.2g} times as long",
    always_counted=False,
)


def _cell(run: Run) -> str:
    """One cell of a study; the study's job is the same in all cells."""
    study = run.plan.study
    cell = in_words({axis: value for axis, value in study.cell.items() if axis != SYSTEM})
    return f"{study.called} ({'; '.join(filter(None, [cell, *map(in_words, study.parts)]))})"


SUITE: Final = replace(WORDING, work=_cell)
"""Wording for a cell of a study that is a folder."""
