"""Fits the twin to records: every parameter with its interval, and the fitted model's power."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np

from opjoule.base.errors import BadInput
from opjoule.bench.simulation.fitting.estimates import (
    LEAST_W,
    Estimate,
    assumed,
    fitted_or_prior,
    flush_latency,
    read_rate,
    write_rate,
)
from opjoule.bench.simulation.fitting.powers import PowerFit, TailKnowledge, fit_powers
from opjoule.bench.simulation.fitting.recorded import NOWHERE, Recorded, Replayed, replayed
from opjoule.bench.simulation.power_model import BoardModel, MediumModel, Models, Supply
from opjoule.energy.error_bounds import SQRT3, VOLTAGE, ErrorBounds
from opjoule.energy.systematic import Integrals, systematic
from opjoule.energy.trace.power_trace import Float64Array, PowerTrace
from opjoule.energy.trace.supply_line import BusReadings, SupplyLine, fit_supply_line

HELD: Final = ("monsoon",)
"""Meters that are also the supply, and keep its voltage constant."""
READINGS: Final = 20_000


def supply_estimates(records: Sequence[Recorded], prior: Supply) -> list[Estimate]:
    """Open voltage [V] and resistance [ohm] of the supply, means over the records."""
    lines = [line for line in (_line(one) for one in records) if line]
    priors = {f"supply.{name}": value for name, value in asdict(prior).items()}
    if not lines:
        held = any(one.meter in HELD for one in records)
        why = "the meter is the supply, and holds its voltage" if held else "the voltage was not measured"
        return [assumed(key, stated, why) for key, stated in priors.items()]
    values, standard_u = np.array([line[:2] for line in lines]), np.array([line[2:] for line in lines])
    mean = values.mean(axis=0)
    between = values.std(axis=0, ddof=1) if len(lines) > 1 else np.zeros(2)
    u = np.hypot(standard_u.max(axis=0), between)
    return [
        fitted_or_prior(key, value, standard, "voltage against current", stated)
        for (key, stated), value, standard in zip(priors.items(), mean, u, strict=True)
    ]


def _line(one: Recorded) -> tuple[float, float, float, float] | None:
    """(open voltage [V], resistance [ohm], their standard uncertainties); None if the voltage does not show them."""
    constant = one.trace.bus is None and np.ptp(one.trace.voltage_v[one.trace.good]) == 0
    if one.meter in HELD or constant:
        return None
    line = one.trace.supply or _line_of_samples(one.trace)
    if line is None:
        return None
    current_a = float(line.current_a.mean())
    source_v = float(line.source_v.mean())
    bounds = one.sensor.gain_errors_max if one.sensor else {}
    current_gain = math.hypot(*(bound for name, bound in bounds.items() if name != VOLTAGE)) / SQRT3
    gain = math.hypot(current_gain, bounds.get(VOLTAGE, 0.0) / SQRT3)
    # few levels of current give few codes, whose errors do not average out
    codes = max(np.unique(np.round(line.reading_v, 4)).size, 2)
    steps_ohm = _step_v(one) / math.sqrt(12.0 * codes) / max(float(line.current_a.std()), 1e-6)
    ohm_u = math.hypot(line.resistance_u_ohm, gain * line.resistance_ohm, steps_ohm)
    at_board_u_v = one.sensor.voltage_u_v(source_v) if one.sensor else 0.0
    drift_v = float(np.abs(np.diff([part.mean() for part in np.array_split(line.source_v, 4)])).max())
    volt_u = math.hypot(at_board_u_v, ohm_u * current_a, drift_v / 2)
    return source_v, round(line.resistance_ohm, 9), volt_u, ohm_u


def _step_v(one: Recorded) -> float:
    """Quantisation step of the voltage [V]."""
    if one.trace.bus is not None and one.trace.bus.step_v:
        return one.trace.bus.step_v
    return one.sensor.voltage_step_v if one.sensor else 0.0


def _line_of_samples(trace: PowerTrace) -> SupplyLine | None:
    """The load line of a meter that measures voltage with every current."""
    good = np.flatnonzero(trace.good)
    some = good[:: max(good.size // READINGS, 1)][1:-1]
    return fit_supply_line(BusReadings(trace.meter_ns[some], trace.voltage_v[some]), trace.meter_ns, trace.current_a)


BUSY_MIN_S: Final = 0.3
"""Least time at work of a part for an estimate of its power."""
EDGE_U_S: Final = 0.003
"""Standard uncertainty of the end of a write [s]: bytes are counted when whole requests are done."""
TAIL_LEAST_U_S: Final = 0.05
"""Least expanded uncertainty of the tail's length: the end of a write within a sample of the counters is unknown."""


def power_estimates(
    fit: PowerFit, records: Sequence[Recorded], board: BoardModel, medium: MediumModel, rate: Estimate
) -> list[Estimate]:
    """Idle power, power by busy cores, the medium's powers, the tail's length; priors if the records lack the data."""
    sensors = [one.sensor for one in records if one.sensor]
    volts = float(np.mean([np.nanmean(one.trace.voltage_v) for one in records]))
    cores = len(board.busy_cores_w) - 1
    idle_w = fit.best.idle_w - medium.idle_w
    u_w = math.hypot(fit.idle_u_w, _systematic_u_w(sensors, fit.best.idle_w, volts, offset=True))
    shared = f", the medium's assumed idle {medium.idle_w:g} W subtracted" if medium.idle_w else ""
    origin = f"mean of the baselines{shared}"
    made = [fitted_or_prior("board.busy_cores_w.0", idle_w, u_w, origin, board.busy_cores_w[0])]
    made += _core_estimates(fit, board, made[0], sensors, volts)
    parts = np.eye(cores + 2)
    gain = [_systematic_u_w(sensors, float(watts), volts) for watts in fit.best.watts]
    standard_u = np.hypot([fit.u_w(counts) for counts in parts], gain)
    made.append(assumed("medium.idle_w", medium.idle_w, "the medium draws from the board's supply"))
    active_w, active_u_w, busy_s = (float(values[cores]) for values in (fit.best.watts, standard_u, fit.busy_s))
    if busy_s < BUSY_MIN_S:
        made.append(assumed("medium.active_w", medium.active_w, f"the medium was busy for {busy_s:.2g} s"))
    else:
        given = "" if rate.identified else ", at the assumed rate: only its joules per byte are known"
        origin = f"power while the medium worked, {busy_s:.3g} s{given}"
        made.append(fitted_or_prior("medium.active_w", active_w, active_u_w, origin, medium.active_w))
    misplaced_w = active_w * EDGE_U_S / max(fit.best.tail_s, EDGE_U_S)
    return made + _tail_estimates(fit, medium, math.hypot(float(standard_u[cores + 1]), misplaced_w))


def _core_estimates(
    fit: PowerFit, board: BoardModel, idle: Estimate, sensors: Sequence[ErrorBounds], volts: float
) -> list[Estimate]:
    """Power with 1, 2, ... busy cores; for a core that was never busy, the prior step is added."""
    made, above_w, known = [], 0.0, True
    counted = np.zeros(len(fit.best.watts))
    for core in range(1, len(board.busy_cores_w)):
        key, only_core = f"board.busy_cores_w.{core}", np.eye(counted.size)[core - 1]
        prior_w = board.busy_cores_w[core] - board.busy_cores_w[core - 1]
        step_w, busy_s = float(fit.best.watts[core - 1]), float(fit.busy_s[core - 1])
        known = known and busy_s >= BUSY_MIN_S and 2 * fit.u_w(only_core) <= max(step_w, LEAST_W)
        above_w += step_w if known else prior_w
        value_w = idle.value + above_w
        if not known:
            why = f"core {core} was busy for {busy_s:.2g} s; the assumed step of {prior_w:.3g} W is added"
            made.append(assumed(key, value_w, why))
            continue
        counted += only_core
        systematic_u_w = _systematic_u_w(sensors, value_w, volts, offset=True)
        u_w = math.hypot(fit.u_w(counted), fit.idle_u_w, systematic_u_w)
        origin = f"power against busy cores, core {core} busy for {busy_s:.3g} s"
        made.append(fitted_or_prior(key, value_w, u_w, origin, value_w))
    return made


def _tail_estimates(fit: PowerFit, medium: MediumModel, standard_u_w: float) -> list[Estimate]:
    """Estimates of the tail's power and length."""
    value_w, busy_s, tail_s = float(fit.best.watts[-1]), float(fit.busy_s[-1]), fit.best.tail_s
    if busy_s < BUSY_MIN_S or fit.tail is TailKnowledge.NOTHING:
        rested = busy_s >= BUSY_MIN_S
        why = "other activity changed the power by more" if rested else "no rest followed a write"
        return [assumed("medium.tail_w", medium.tail_w, why), assumed("medium.tail_s", medium.tail_s, why)]
    origin = f"power after the last write, {busy_s:.3g} s in the tail"
    if fit.tail is TailKnowledge.LENGTH:
        u_s = max(fit.tails_s[1] - tail_s, tail_s - fit.tails_s[0], TAIL_LEAST_U_S) / 2
        # only the product of the tail's power and length is well determined
        standard_u_w = math.hypot(standard_u_w, value_w * u_s / tail_s)
        length = fitted_or_prior("medium.tail_s", tail_s, u_s, origin, medium.tail_s)
    else:
        length = assumed("medium.tail_s", medium.tail_s, "no length of a tail stands out in the power")
        origin += f", its length taken as {tail_s:.3g} s"
    return [fitted_or_prior("medium.tail_w", value_w, standard_u_w, origin, medium.tail_w), length]


def _systematic_u_w(sensors: Sequence[ErrorBounds], power_w: float, volts: float, *, offset: bool = False) -> float:
    """Standard uncertainty of a power from gain, for a total power also from offset [W]; of the least known sensor."""
    integrals = Integrals(power_w, volts if offset else 0.0, power_w / volts)
    errors = [systematic(sensor, integrals) for sensor in sensors]
    return max((math.hypot(one.gain_u, one.offset_u if offset else 0.0) for one in errors), default=0.0)


BETWEEN: Final = "between phases"
UNKNOWN_MEDIUM: Final = "sd"
"""Medium whose assumed parameters are used for one missing in models.toml."""
UNKNOWN_MEMORY_BYTES: Final = 1_000_000_000


@dataclass(frozen=True)
class PhaseBalance:
    """One kind of phase: measured energy and the fitted model's."""

    name: str
    duration_s: float
    measured_j: float
    model_j: float

    @property
    def ratio(self) -> float:
        """Model energy divided by measured energy."""
        return self.model_j / self.measured_j

    @property
    def words(self) -> tuple[str, str, str, str, str]:
        """Name, time, measured energy, model energy and ratio, as in a table."""
        return (
            self.name,
            f"{self.duration_s:.3g} s",
            f"{self.measured_j:.4g} J",
            f"{self.model_j:.4g} J",
            f"{self.ratio:.3f}",
        )


@dataclass(frozen=True)
class FittedTwin:
    """The twin of one board with one medium."""

    records: tuple[Recorded, ...]
    estimates: tuple[Estimate, ...]
    board: BoardModel
    medium: MediumModel
    supply: Supply
    model: tuple[Replayed, ...]
    """The fitted model's power for each record."""

    @property
    def simulated(self) -> bool:
        """Whether the records come from a simulated rig."""
        return self.records[0].simulated

    def __getitem__(self, key: str) -> Estimate:
        """A parameter by its key."""
        return next(estimate for estimate in self.estimates if estimate.key == key)

    def balances(self) -> list[PhaseBalance]:
        """Energies of each kind of phase over all records, in order of time."""
        sums: dict[str, Float64Array] = {}
        for one, model in zip(self.records, self.model, strict=True):
            span_s = one.windows.span_s
            known = np.isfinite(one.windows.power_w)
            for at in np.unique(one.windows.phase):
                chosen = known & (one.windows.phase == at)
                name = BETWEEN if at == NOWHERE else one.phases[int(at)].name
                joules = [
                    float(span_s[chosen].sum()),
                    float(span_s[chosen] @ one.windows.power_w[chosen]),
                    float(span_s[chosen] @ model.total_w[chosen]),
                ]
                sums[name] = sums.get(name, np.zeros(3)) + np.array(joules)
        shown = sorted(sums, key=lambda name: name == BETWEEN)
        return [PhaseBalance(name, *sums[name].tolist()) for name in shown if sums[name][1] > 0]

    def verdict(self) -> str:
        """One plain sentence on the model's error."""
        balances = [balance for balance in self.balances() if balance.name != BETWEEN] or self.balances()
        worst = max(balances, key=lambda balance: abs(balance.ratio - 1))
        total = sum(balance.model_j for balance in balances) / sum(balance.measured_j for balance in balances)
        whole = f"over all phases it draws {100 * (total - 1):+.1f} %"
        off = 100 * (worst.ratio - 1)
        if abs(off) < 1:
            return f"The twin follows the measurement within 1 % in every phase; {whole}."
        return (
            f"The twin is furthest off in '{worst.name}', where it draws {abs(off):.1f} % "
            f"{'more' if off > 0 else 'less'} than was measured ({worst.model_j:.4g} J for {worst.measured_j:.4g} J); "
            f"{whole}."
        )


def fit_twin(records: Sequence[Recorded]) -> FittedTwin:
    """The twin of the records' board and medium, fitted to all records together.

    Raises: BadInput: several boards or media, or simulated and real records mixed. DataFault: no idle power.
    """
    _check(records)
    board_name, medium_name = records[0].board, records[0].medium
    prior = Models.stated()
    cores = max(one.cores for one in records)  # no power is assumed for a board missing in models.toml
    board = prior.boards.get(board_name) or BoardModel((0.0,) * (cores + 1), UNKNOWN_MEMORY_BYTES)
    medium = prior.media.get(medium_name) or prior.media[UNKNOWN_MEDIUM]
    rates = write_rate(records, medium.write_bytes_per_s), read_rate(records, medium.read_bytes_per_s)
    flush = flush_latency(records, rates[0], medium.flush_s)
    write_b_s, read_b_s = (rate.value for rate in rates)
    timed = replace(medium, write_bytes_per_s=write_b_s, read_bytes_per_s=read_b_s, flush_s=flush.value, spread={})
    power = fit_powers(records, timed, len(board.busy_cores_w) - 1)
    made = [
        *power_estimates(power, records, board, timed, rates[0]),
        *rates,
        flush,
        *supply_estimates(records, prior.supply),
    ]
    values = {estimate.key: estimate.value for estimate in made}
    steps = range(len(board.busy_cores_w))
    fitted_board = BoardModel(tuple(values[f"board.busy_cores_w.{at}"] for at in steps), board.memory_bytes)
    active_w, tail_w, tail_s = (values[f"medium.{name}"] for name in ("active_w", "tail_w", "tail_s"))
    fitted_medium = replace(timed, active_w=active_w, tail_w=tail_w, tail_s=tail_s)
    supply = Supply(values["supply.open_voltage_v"], values["supply.resistance_ohm"])
    model = tuple(replayed(fitted_board, fitted_medium, one) for one in records)
    return FittedTwin(tuple(records), tuple(made), fitted_board, fitted_medium, supply, model)


def _check(records: Sequence[Recorded]) -> None:
    names = [one.name for one in records]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"{twice} is named twice: each record counts once")
    for name in ("board", "medium", "simulated"):
        values = list(dict.fromkeys(getattr(one, name) for one in records))
        if len(values) > 1:
            words = "simulated records and measured ones" if name == "simulated" else f"{' and '.join(values)}"
            raise BadInput(
                f"a twin describes one board with one medium, and these records have {words}; fit each alone"
            )
