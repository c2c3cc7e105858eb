"""One fitted parameter: value, interval and origin, or the reason why the records do not determine it."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from opjoule.base.coverage import COVERAGE_FACTOR

LEAST_W: Final = 0.02
_CORES_RUN: Final = "a run that keeps 1, 2, ... all cores busy: host/measure.py twin prints it"
_TAIL_RUN: Final = "a run that writes, then rests for longer than the tail: host/measure.py twin prints it"
_WRITE_RUN: Final = "a run that writes for seconds: host/measure.py twin prints it"
_READ_RUN: Final = "a run that reads for seconds: host/measure.py twin prints it"
_SYNC_RUN: Final = "a synced workload: -p durability=sync, or the run that host/measure.py twin prints"
_SUPPLY_RECORD: Final = "a record with a meter that measures voltage and current of an ordinary supply"


class Parameter(NamedTuple):
    """Properties of a parameter that do not depend on the records."""

    unit: str
    needed_run: str
    """Run that determines it."""
    least: float = 0.0
    """Absolute width of an interval up to which it counts as identified, even if its value is smaller."""


PARAMETERS: Final = {
    "board.busy_cores_w": Parameter("W", _CORES_RUN, LEAST_W),
    "board.busy_cores_w.0": Parameter("W", "a run with --idle 30", LEAST_W),
    "medium.idle_w": Parameter("W", "a further sensor in the medium's supply"),
    "medium.active_w": Parameter("W", _WRITE_RUN, LEAST_W),
    "medium.tail_w": Parameter("W", _TAIL_RUN, LEAST_W),
    "medium.tail_s": Parameter("s", _TAIL_RUN),
    "medium.write_bytes_per_s": Parameter("B/s", _WRITE_RUN),
    "medium.read_bytes_per_s": Parameter("B/s", _READ_RUN),
    "medium.flush_s": Parameter("s", _SYNC_RUN),
    "supply.open_voltage_v": Parameter("V", _SUPPLY_RECORD),
    "supply.resistance_ohm": Parameter("ohm", _SUPPLY_RECORD, 0.02),
}
"""Parameters by key; the powers with one busy core and more have one entry."""


@dataclass(frozen=True)
class Estimate:
    """A parameter of the twin."""

    key: str
    """Place in the profile, such as `medium.active_w`."""
    value: float
    """Value for the profile: fitted, or assumed if the record does not determine it."""
    u: float | None
    """Expanded uncertainty (k = 2), in the value's unit; None: not identifiable."""
    origin: str
    """The data of the fit, or the reason why the parameter is not identifiable."""

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return _parameter(self.key).unit

    @property
    def needed_run(self) -> str:
        """The run that would determine it; empty if it is identified."""
        return "" if self.identified else _parameter(self.key).needed_run

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


def _parameter(key: str) -> Parameter:
    return PARAMETERS.get(key) or PARAMETERS[key.rpartition(".")[0]]


def assumed(key: str, value: float, why: str) -> Estimate:
    """A parameter that the records do not determine: the prior is kept."""
    return Estimate(key, value, None, f"not identifiable: {why}")


def fitted_or_prior(key: str, value: float, standard_u: float, origin: str, prior: float) -> Estimate:
    """A fitted parameter, or the prior if the interval is wider than both the value and the parameter's `least`."""
    u = COVERAGE_FACTOR * standard_u
    if u <= max(abs(value), _parameter(key).least):
        return Estimate(key, value, u, origin)
    return assumed(key, prior, f"the record gives {value:.3g} ± {u:.2g}")
