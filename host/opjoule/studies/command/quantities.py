"""The quantities of a command: operations and their figures are those that it has marked."""

from __future__ import annotations

from typing import Any, Final

from opjoule.record.definition import ABOVE_IDLE, ENERGY, Definition, Quantities, Topic
from opjoule.record.operation_quantities import OPERATIONS
from opjoule.record.quantities import COMMON, SENSORS

_OF_A_PHASE: Final = (
    ("energy_j", "J", "energy of a phase that the command marked", (ENERGY,)),
    ("marginal_energy_j", "J", "the same less idle power times the phase's duration", (ENERGY, ABOVE_IDLE)),
    ("duration_s", "s", "its duration", ()),
    ("operations", "1", "operations marked in it", ()),
    ("energy_per_operation_j", "J", "its energy over them", (ENERGY,)),
    ("marginal_energy_per_operation_j", "J", "its energy above idle over them", (ENERGY, ABOVE_IDLE)),
)
_CHANGED: Final[dict[str, dict[str, Any]]] = {
    "marginal_energy_j": {"headline": "above idle", "rank": {"headline": -1}},
    "write_back_energy_j": {"headline": "of it after its end"},
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
