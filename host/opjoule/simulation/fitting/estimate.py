"""One fitted parameter: value, interval and origin, or the reason why the records do not determine it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opjoule.units import COVERAGE_FACTOR

LEAST_W: Final = 0.02
LEAST_OHM: Final = 0.02
"""Absolute width of an interval up to which a resistance counts as identified, even if its value is smaller."""


@dataclass(frozen=True)
class Estimate:
    """A parameter of the twin."""

    key: str
    """Place in the profile, such as `medium.active_w`."""
    value: float
    """Value for the profile: fitted, or assumed if the record does not determine it."""
    u: float | None
    """Expanded uncertainty (k = 2), in the value's unit; None: not identifiable."""
    unit: str
    origin: str
    """The data of the fit, or the reason why the parameter is not identifiable."""
    needed_run: str = ""
    """The run that would determine it; empty if it is identified."""

    @property
    def identified(self) -> bool:
        """Whether the records determine it."""
        return self.u is not None

    @property
    def low(self) -> float:
        """Lower end of the interval; the value itself if there is none."""
        return self.value - (self.u or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the value itself if there is none."""
        return self.value + (self.u or 0.0)

    def holds(self, truth: float) -> bool:
        """Whether the interval contains a known true value; False without an interval."""
        return self.u is not None and self.low <= truth <= self.high


def assumed(key: str, value: float, unit: str, why: str, needed_run: str) -> Estimate:
    """A parameter that the records do not determine: the prior is kept."""
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
    """A fitted parameter, or the prior if the interval is wider than both the value and `least`."""
    u = COVERAGE_FACTOR * standard_u
    if u <= max(abs(value), least):
        return Estimate(key, value, u, unit, origin)
    return assumed(key, prior, unit, f"the record gives {value:.3g} ± {u:.2g}", needed_run)
