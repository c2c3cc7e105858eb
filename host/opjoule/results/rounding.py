"""Numbers as texts for readers: rounded to their uncertainty, with an SI prefix.

The uncertainty keeps two significant digits, and the value ends at the same decimal place (JCGM 100:2008, 7.2.6):
0.00123456 J with u = 0.0000512 J becomes "1.235 ± 0.051 mJ".
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from opjoule.base.units import Quantity

PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
# A prefix fits units that begin with one of these symbols: "J", "J/operation", "B/s"; not "1/s", "operations" or "%".
PREFIXED_SYMBOLS = ("J", "W", "s", "A", "V", "B", "C", "Hz", "Ω")
PRINTED_UNITS = {"1": "", "1/s": "/s"}
MINUS = "\N{MINUS SIGN}"
OPERATIONS = "operations/s"
NONE = "\N{EM DASH}"
"""Text of a missing value."""
POSITIVE = ("J", "J/operation", "W", "s", "B", "1/s", "B/s")
"""Units of quantities that have no negative values."""
LARGE = 100
"""Above this an exact number is rounded to a tenth."""
LEAST_CHANCE = 1e-4
"""Smaller p-values are not told apart."""


@dataclass(frozen=True)
class Rounded:
    """A number ready to print; value and interval end at the same decimal place."""

    value: str
    interval: str
    """For example "± 1.1" or "(0 to 2.3)"; empty if no uncertainty is known."""
    unit: str

    @property
    def figure(self) -> str:
        """Value and interval without the unit."""
        return f"{self.value} {self.interval}".rstrip()

    def __str__(self) -> str:
        return with_unit(self.figure, self.unit)


def rounded(value: float, u: float | None, unit: str, digits_without_u: int = 4) -> Rounded:
    """Rounds a value to its uncertainty.

    Args:
        u: expanded uncertainty in `unit`. None: unknown, `digits_without_u` significant digits are kept. 0: exact,
            printed in full; a large number that is not whole (a mean of counts) is rounded to a whole one.
        unit: without prefix; "" and "1" give bare numbers, "1/s" gives "/s".
    Returns: texts with the prefix for which the larger of value and u is between 1 and 1000, or with the next one
        if digits beyond the uncertainty would have to be filled with zeros (0.50 ± 0.10 J, not 500 ± 100 mJ).
    """
    exact = Decimal(repr(float(value)))
    spread = None if u is None else Decimal(repr(abs(float(u))))
    last_place = _last_place(exact, spread, digits_without_u)
    exact, spread = _to_place(exact, last_place), None if spread is None else _to_place(spread, last_place)
    power = _prefix_power(max(abs(exact), spread or Decimal(0)), last_place, unit)
    places = None if last_place is None else max(0, power - last_place)
    texts = [None if n is None else _text(n.scaleb(-power), places) for n in (exact, spread)]
    return Rounded(texts[0] or "", f"± {texts[1]}" if spread else "", PREFIXES[power] + PRINTED_UNITS.get(unit, unit))


def percent(fraction: float) -> str:
    """A fraction in per cent: 0.2512 gives "25.1 %", and a fraction below 0.1 % gives "< 0.1 %"."""
    if 0 < fraction < 0.001:
        return with_unit("< 0.1", "%")
    return str(rounded(100 * fraction, None, "%", digits_without_u=3))


def with_limits(value: float, limits: tuple[float, float]) -> str:
    """A number with an asymmetric interval: "2.92 (1.63 to 8.4)", "2.9 (1.2 or more)", "1.5 (any)"."""
    number, interval = limits_words(value, limits)
    return f"{number} ({interval})"


def limits_words(value: float, limits: tuple[float, float]) -> tuple[str, str]:
    """A number and its asymmetric interval: ("2.92", "1.63 to 8.4"), ("2.9", "1.2 or more"), ("1.5", "any").

    The distance of the nearer end determines the digits; the upper end may be infinite.
    """
    low, high = limits
    nearest = min(value - low, high - value)
    places = min(max(1 - math.floor(math.log10(nearest)), 0), 6) if nearest > 0 else 6
    if math.isinf(high) and float(f"{low:.{places}f}") <= 0:
        return f"{value:.{places}f}", "any"
    beyond = "or more" if math.isinf(high) else f"to {high:.{places}f}"
    return f"{value:.{places}f}", f"{low:.{places}f} {beyond}"


def from_zero(value: float, u: float, unit: str) -> Rounded:
    """A value of at least 0 with the limits of an interval that would reach below 0: "0.5 (0 to 2.3) mJ"."""
    high = value + u
    factor, shown = scaled([high], unit)
    places = min(max(1 - math.floor(math.log10(high * factor)), 0), 6)
    return Rounded(f"{value * factor:,.{places}f}", f"(0 to {high * factor:,.{places}f})", shown)


def with_unit(number: str, unit: str) -> str:
    """Number and unit with a no-break space between them."""
    return f"{number}\N{NO-BREAK SPACE}{unit}" if unit else number


def scaled(values: Iterable[float], unit: str) -> tuple[float, str]:
    """Factor that brings values into a readable range for an axis, and their unit after scaling."""
    if unit == "1":
        return 100.0, "%"
    size = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if unit == OPERATIONS:
        return (1e-3, f"1,000 {OPERATIONS}") if size >= 10_000 else (1.0, OPERATIONS)
    shown = PRINTED_UNITS.get(unit, unit)
    if size == 0 or not unit.startswith(PREFIXED_SYMBOLS):
        return 1.0, shown
    power = min(max(3 * math.floor(math.log10(size) / 3), min(PREFIXES)), max(PREFIXES))
    return 10.0**-power, PREFIXES[power] + shown


def _last_place(value: Decimal, u: Decimal | None, digits: int) -> int | None:
    """Power of ten of the last digit to keep; None: keep all of them."""
    if u is None:
        return None if value == 0 else value.adjusted() - digits + 1
    if u == 0:
        return None if value == value.to_integral_value() or abs(value) < LARGE else 0
    place = u.adjusted() - 1
    # 0.0996 rounds up to 0.10: two digits again, one place higher.
    return place + 1 if _to_place(u, place).adjusted() > u.adjusted() else place


def _to_place(number: Decimal, place: int | None) -> Decimal:
    # Adding 0 turns a rounded -0 into 0.
    return number if place is None else number.quantize(Decimal((0, (1,), place)), ROUND_HALF_EVEN) + 0


def _prefix_power(size: Decimal, last_place: int | None, unit: str) -> int:
    if not unit.startswith(PREFIXED_SYMBOLS) or size == 0:
        return 0
    power = 3 * (size.adjusted() // 3)
    if last_place is not None:
        power = max(power, 3 * -(-last_place // 3))
    return min(max(power, min(PREFIXES)), max(PREFIXES))


def _text(number: Decimal, places: int | None) -> str:
    if places is None:
        number = number.normalize()
        places = max(0, -int(number.as_tuple().exponent))
    return f"{number:,.{places}f}".replace("-", MINUS)


def quantity_text(of: Quantity) -> str:
    """Value and interval with unit; a dash for a missing value."""
    shown = rounded_quantity(of)
    return NONE if shown is None else str(shown)


def rounded_quantity(of: Quantity) -> Rounded | None:
    """Rounded texts of a quantity; None if it is missing.

    A positive value that is smaller than its uncertainty is given with the limits of its interval, from 0 on.
    """
    if of.value is None:
        return None
    if of.u is not None and 0 <= of.value < of.u and of.unit in POSITIVE:
        return from_zero(of.value, of.u, of.unit)
    return rounded(of.value, of.u, of.unit)


def chance_number(chance: float | None) -> str:
    """A p-value: "< 0.0001", "0.012"; a dash if there is none."""
    if chance is None:
        return NONE
    return "< 0.0001" if chance < LEAST_CHANCE else f"{chance:.2g}"


def chance_words(name: str, chance: float | None) -> str:
    """A p-value with its name: "p (Holm) < 0.0001", "p = 0.012"; a dash if there is none."""
    number = chance_number(chance)
    return number if chance is None else f"{name} {'' if chance < LEAST_CHANCE else '= '}{number}"
