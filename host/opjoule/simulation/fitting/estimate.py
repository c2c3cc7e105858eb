"""One fitted parameter: value, interval and origin, or why the record does not determine it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opjoule.units import COVERAGE_FACTOR

LEAST_W: Final = 0.02
LEAST_OHM: Final = 0.02
"""A parameter counts as identified if its interval is no wider than its value, or than this."""


@dataclass(frozen=True)
class Estimate:
    """A parameter of the twin."""

    key: str
    """Place in the profile, as `medium.active_w`."""
    value: float
    """Value for the profile: fitted, or assumed if the record does not determine it."""
    u: float | None
    """Expanded uncertainty (k = 2), in the value's unit; None: not identifiable."""
    unit: str
    origin: str
    """The data it was fitted to, or why it is not identifiable."""
    needed_run: str = ""
    """The run that would determine it; empty if it is identified."""

    @property
    def identified(self) -> bool:
        """Whether the records determine it."""
        return self.u is not None

    @property
    def low(self) -> float:
        """Lower end of the interval; the value itself where there is none."""
        return self.value - (self.u or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the value itself where there is none."""
        return self.value + (self.u or 0.0)

    def holds(self, truth: float) -> bool:
        """Whether the interval holds a known truth; False where there is no interval."""
        return self.u is not None and self.low <= truth <= self.high


def assumed(key: str, value: float, unit: str, why: str, needed_run: str) -> Estimate:
    """A parameter that the records do not determine: the prior stays."""
    return Estimate(key, value, None, unit, f"not identifiable: {why}", needed_run)


def fitted_or_prior(
    key: str,
    value: float,
    standard_u: float,
    unit: str,
    origin: str,
    prior: float,
    *,
    least: float,
    needed_run: str,
) -> Estimate:
    """A fitted parameter, or the prior where its interval is wider than its value and than `least`."""
    u = COVERAGE_FACTOR * standard_u
    if u <= max(abs(value), least):
        return Estimate(key, value, u, unit, origin)
    return assumed(key, prior, unit, f"the record gives {value:.3g} ± {u:.2g}", needed_run)
