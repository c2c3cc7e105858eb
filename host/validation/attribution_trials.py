"""Compares the attribution of experiments with their known energies. SIMULATED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from known_meter import experiment
from known_work import PACED, Choice
from opjoule.attribution.attribute import attribute_runs

SCENARIOS: Final = {
    "everything at random": Choice(),
    "50/50, an update costs 3 reads": Choice(mix=(0.5, 0.5), ratio=3.0),
    "95/5, an update costs 3 reads": Choice(mix=(0.95, 0.05), ratio=3.0),
    "kinds that cannot be told apart": Choice(mix=(0.5, 0.5), ratio=3.0, locked=True, slow_meter=True),
    "the same in mix blocks": Choice(mix=(0.5, 0.5), ratio=3.0, slow_meter=True, design=True),
    "writes on one background thread": Choice(mix=(0.05, 0.95), engine="one thread"),
    "writes on two background threads": Choice(mix=(0.05, 0.95), engine="two threads"),
    "a client that paces its operations": Choice(family=PACED),
}
"""Scenario -> the properties that it fixes; all others are drawn at random."""
KINDS: Final = ("read", "update", "insert", "read-modify-write")


@dataclass(frozen=True)
class Held:
    """One figure of one experiment and its true value."""

    seed: int
    name: str
    true_j: float
    found_j: float
    u_j: float
    """k = 2"""
    whole_j: float
    """True energy above idle of the whole run."""
    identified: bool
    """False if the attribution reports the figure as not identifiable from the data."""

    @property
    def covered(self) -> bool:
        """True if the interval contains the true value."""
        return abs(self.found_j - self.true_j) <= self.u_j

    @property
    def error(self) -> float:
        """Error relative to the true value, or to the whole energy above idle if the true value is zero."""
        return (self.found_j - self.true_j) / (self.true_j or self.whole_j)


def trial(scenario: str, seed: int) -> list[Held]:
    """Draws one experiment and attributes its energy."""
    made = experiment(seed, SCENARIOS[scenario])
    attribution = attribute_runs([made.work])[0]
    run, marginal = made.energies.run.energy, made.energies.marginal
    assert marginal
    whole_j = made.marginal_j
    held = [
        Held(seed, "run, total", made.run_j, run.value, 2 * run.standard_u, whole_j, True),
        Held(seed, "above idle", whole_j, marginal.energy.value, 2 * marginal.energy.standard_u, whole_j, True),
    ]
    for name, share in {**attribution.operations, **attribution.activities}.items():
        true_j = made.known.true_j.get(name, 0.0)
        identified = not share.reason
        held.append(Held(seed, name, true_j, float(share), 2 * share.standard_u, whole_j, identified))
    return held


@dataclass(frozen=True)
class Line:
    """Summary of one figure over all experiments."""

    name: str
    experiments: int
    identified: int
    coverage: float
    error: float
    """Median of the absolute errors."""
    error_95: float
    """95th percentile of the absolute errors."""
    bias: float
    """Median of the signed errors."""
    width: float
    """Median of the interval's half-width over the true value."""
    share_95: float
    """95th percentile of the absolute error over the whole energy above idle."""
    within_5: float
    """Share of the identified figures whose error is at most 5 %."""


def line(name: str, held: Sequence[Held]) -> Line:
    """Summarizes one figure. Figures that were not identified enter only the count `experiments`."""
    identified = [figure for figure in held if figure.identified]
    if not identified:
        return Line(name, len(held), 0, *([float("nan")] * 7))
    errors = np.array([figure.error for figure in identified])
    widths = [figure.u_j / (figure.true_j or figure.whole_j) for figure in identified]
    shares = [abs(figure.found_j - figure.true_j) / figure.whole_j for figure in identified]
    return Line(
        name,
        len(held),
        len(identified),
        float(np.mean([figure.covered for figure in identified])),
        float(np.median(np.abs(errors))),
        float(np.quantile(np.abs(errors), 0.95)),
        float(np.median(errors)),
        float(np.median(widths)),
        float(np.quantile(shares, 0.95)),
        float(np.mean(np.abs(errors) <= 0.05)),
    )


def lines(held: Sequence[Held]) -> list[Line]:
    """Table of one scenario: total, above idle, all kinds together, all activities together, then each of them."""
    names = list(dict.fromkeys(figure.name for figure in held))
    parts = [figure for figure in held if figure.name not in names[:2]]
    groups = {
        "every kind": [part for part in parts if part.name in KINDS],
        "every activity": [part for part in parts if part.name not in KINDS],
    }
    rows = [line(name, [figure for figure in held if figure.name == name]) for name in names[:2]]
    rows += [line(name, group) for name, group in groups.items() if group]
    return rows + [line(name, [figure for figure in held if figure.name == name]) for name in names[2:]]
