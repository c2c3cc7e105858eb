"""The two costs of the same work, which answer two questions, and the time that it takes.

A board that is on anyway: energy above idle. A board that is on only for this work: energy in all. The slower of two
systems keeps the board on for longer, so either may be the better one.
"""

from collections.abc import Sequence
from typing import Final

from opjoule.runs.evaluation.quantities.definition import Definition, Quantities

TWO_COSTS: Final = (
    "Energy above idle is what the work costs on a board that is on anyway; energy in all is what it costs on a board "
    "that is on only for this work."
)
NOT_JUDGED: Final = (
    "All told is what one operation of a kind costs above idle with everything that it causes later. It is not judged."
)
_ABOVE_IDLE: Final = "marginal_"
"""Beginning of the key of an energy above idle; the rest is the key of the same energy in all."""


def costs(quantities: Quantities) -> list[Definition]:
    """The headline, and the same energy in all if the headline is an energy above idle."""
    headline = quantities.headline
    both = costs_in([headline, *quantities]) if is_above_idle(headline) else []
    return both or [headline]


def costs_in(quantities: Sequence[Definition]) -> list[Definition]:
    """The first energy above idle among some quantities and the same energy in all; empty unless both are there."""
    above = next(filter(is_above_idle, quantities), None)
    in_all = [of for of in quantities if above and of.key == above.key.removeprefix(_ABOVE_IDLE)]
    return [above, *in_all] if above and in_all else []


def time_beside(quantities: Quantities) -> Definition | None:
    """The quantity that tells the time behind the headline: throughput, or time if it is not per operation."""
    return quantities.get("throughput_per_s" if "per_operation" in quantities.headline.key else "duration_s")


def kind_of(told: Definition) -> str:
    """The kind of operation whose cost all told a quantity is."""
    return told.key.split(".")[1]


def is_above_idle(of: Definition) -> bool:
    """Whether the quantity is an energy above idle."""
    return of.key.startswith(_ABOVE_IDLE)


def cost_words(of: Definition) -> str:
    """Which of the two costs a quantity is."""
    return "above idle" if is_above_idle(of) else "in all"


def energy_words(of: Definition) -> str:
    """Name of both costs together."""
    return "energy per operation" if "per_operation" in of.key else "energy"
