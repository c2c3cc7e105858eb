"""The largest part of the uncertainty, and advice on how to improve the result."""

from collections.abc import Mapping

from opjoule.base.units import Cause
from opjoule.energy.sensor_calibration import CALIBRATION
from opjoule.results.answer import Answer
from opjoule.results.long_table import by_kind, is_quantity

CALIBRATE = "host/calibrate.py, docs/how-to/calibrate.md"
UNTIL_U = "3%"
"""Advised interval of the headline; once it is reached, more repeats are no longer advised."""
REMEDIES = {
    "gain": f"calibrate the sensor ({CALIBRATE}), or state tighter bounds of shunt and chip if you know "
    "them (shunt_tolerance=, kelvin=, genuine=)",
    "offset": f"calibrate the sensor's zero ({CALIBRATE}): its offset is taken from the data sheet",
    "heating": f"calibrate with points of a minute ({CALIBRATE}), or use a smaller shunt: its own current heats it",
    "wire": (
        "state the resistance of the wire after the sense point ([supply] sense_ohm in rig.toml), or "
        "sense at the board's pins"
    ),
    "quantisation": "measure longer ({more}) or use a smaller sensor range",
    "voltage": "use a stiffer supply (shorter, thicker cable), or read the voltage more often (bus_every=32)",
    "timebase": (
        "all seconds come from the clock named under timebase: use a board or a host with a more accurate clock"
    ),
    "alignment": "wire the sync line, or measure longer ({more})",
    "loss": "find out where samples are lost: cable, hub or a busy host (host/measure.py doctor)",
    "baseline": "use longer idle phases (--idle {idle:g})",
    "repeats": f"repeat until the energy above idle is known to {UNTIL_U} (--until-u {UNTIL_U}), on a quieter board",
}
OF_A_CALIBRATION = {
    "gain": "calibrate against a better reference; state the room's temperature ([room] temperature_c in rig.toml)",
    "offset": "calibrate with more and longer points at small currents",
    "heating": "calibrate with points of a minute (--seconds 60) up to the greatest current",
}
"""Replacements of the same remedies for a calibrated sensor."""
OF_MORE = ("quantisation", "alignment", "baseline", "repeats")
"""Parts that shrink with more of the same measurement; not advised once the headline is known to UNTIL_U."""
LONGER_IDLE = 4.0
"""Factor by which longer idle phases are advised; it halves their part of the uncertainty."""
LARGE_MARGINAL_U = 0.25


def shares(budget: object) -> dict[str, float]:
    """Known part -> its share of the variance, largest first."""
    parts = budget.items() if isinstance(budget, Mapping) else ()
    known = [(name, part["value"]) for name, part in parts if is_quantity(part) and part["value"] is not None]
    squares = {name: float(value) ** 2 for name, value in known}
    total = sum(squares.values())
    ordered = sorted(squares, key=lambda name: -squares[name]) if total > 0 else ()
    return {name: squares[name] / total for name in ordered}


def largest_parts(answer: Answer) -> list[tuple[str, float]]:
    """The largest part of each budget and its share of the variance; the headline's budget comes first."""
    budgets = [shares(answer.result.get(definition.budget)) for definition in answer.quantities.shown("budget")]
    return [next(iter(budget.items())) for budget in budgets if budget]


def remedies(answer: Answer, more: str, apart: str = "", idle_s: float = 15.0) -> list[str]:
    """Advice on how to improve the result, most useful first; empty without a budget.

    `more` and `apart`: options that measure more, or that separate kinds, in the words of the run's study.
    """
    parts = [name for name, _ in largest_parts(answer)]
    shared = answer.result.get("shared")
    errors = [name for errors in shared.values() for name in errors] if isinstance(shared, Mapping) else []
    is_calibrated = any(str(name).startswith(CALIBRATION) for name in errors)
    known = REMEDIES | (OF_A_CALIBRATION if is_calibrated else {})
    headline = next((answer.quantity(shown.key) for shown in answer.quantities.shown("headline")), None)
    limit_percent = float(UNTIL_U.rstrip("%"))
    enough = headline is not None and 100 * headline.relative_u <= limit_percent
    wanted = [part for part in parts if not (enough and part in OF_MORE)]
    advice = dict.fromkeys(known[part].format(more=more, idle=LONGER_IDLE * idle_s) for part in wanted)
    lines = list(advice)
    if parts and "repeats" not in shares(answer.result.get("budget")):
        lines.append("measure more than one run (--repeats 5): one run does not show how much runs differ")
    marginal = answer.quantity("marginal_energy_j")
    if marginal.u is not None and marginal.relative_u > LARGE_MARGINAL_U and "repeats" not in parts:
        lines.append(f"measure more work ({more}): the energy above idle is small compared with its uncertainty")
    return lines + _for_kinds(answer, more, apart)


def _for_kinds(answer: Answer, more: str, apart: str) -> list[str]:
    energies = {kind: answer.quantity(f"by_operation.{kind}.energy_per_operation_j") for kind in by_kind(answer.result)}
    mixed = [name for name, energy in energies.items() if energy.cause in (Cause.COLLINEAR, Cause.TOO_WIDE)]
    short = [name for name, energy in energies.items() if energy.cause is Cause.FEW_WINDOWS]
    lines = []
    if mixed and apart:
        lines.append(f"run in mix blocks ({apart}): they separate {' and '.join(mixed)}")
    elif mixed or short:
        lines.append(f"measure more work ({more}) to determine the cost of {' and '.join([*mixed, *short])}")
    return lines
