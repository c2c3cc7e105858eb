"""Readings of a multimeter that a person types; the last digit gives their uncertainty."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.base.prompts import Prompts, Stopped
from opjoule.energy.calibration.reference import Accuracy, Reference, multimeter, over_resistor

READING: Final = re.compile(r"^(-?\d*)(?:[.,](\d+))?\s*([mu\N{MICRO SIGN}]?)([AV]?)$")
PREFIX: Final = {"": 1.0, "m": 1e-3, "u": 1e-6, "\N{MICRO SIGN}": 1e-6}


class TypedQuantity(Enum):
    """A quantity that is read off the reference, with its unit."""

    CURRENT = "current", "A"
    DROP = "voltage over the resistor", "V"
    VOLTAGE = "voltage at the board's side of the sensor", "V"


Ask = Callable[[str, TypedQuantity], str | None]
"""Returns the answer to a question about a quantity; None at the end of the input."""
Typed = tuple[float, float]
"""A reading, and its standard uncertainty from its last digit."""


def reading(text: str, unit: str) -> Typed:
    """Parses "0.503", "503 mA" or "0,503 A". Raises: BadInput: not a number, or another unit."""
    match = READING.match(text.strip())
    if not match or match[4] not in {"", unit} or not (match[1].strip("-") or match[2]):
        raise BadInput(
            f"'{text}' is not a reading in {unit}: type all digits that the meter shows, for example 0.5031 or 503.1m"
        )
    digits, scale = match[2] or "", PREFIX[match[3]]
    value = float(f"{match[1] or '0'}.{digits or '0'}") if match[1] != "-" else float(f"-0.{digits}")
    return value * scale, 10.0 ** -len(digits) * scale / 12**0.5


@dataclass(frozen=True)
class TypedReference:
    """A reference that a person reads."""

    reference: Reference
    over_ohm: float | None = None
    """Resistor over which voltages are typed instead of currents [ohm]; None: currents are typed."""
    asks_current: bool = True

    def ask(self, ask: Ask) -> tuple[Typed | None, Typed | None]:
        """Typed current and voltage of one point; None if one is not typed. Raises: BadInput: the input ended."""
        current = voltage = None
        if self.asks_current and self.over_ohm:
            volts, u_v = _asked(ask, TypedQuantity.DROP, f"voltage over the {self.over_ohm:g} ohm")
            current = volts / self.over_ohm, u_v / self.over_ohm
        elif self.asks_current:
            current = _asked(ask, TypedQuantity.CURRENT)
        if self.reference.measures_voltage:
            voltage = _asked(ask, TypedQuantity.VOLTAGE)
        return current, voltage

    def beside(self, meter: Reference) -> Reference:
        """A reference of a meter's currents and typed voltages."""
        currents = tuple(
            replace(error, voltage_share=0.0, voltage_v=0.0)
            for error in meter.common
            if error.current_share or error.current_a
        )
        both = f"{meter.stated}; {self.reference.name}: {self.reference.stated}"
        return Reference(f"{meter.name} and {self.reference.name}", both, (*currents, *self.reference.common))


def typed_reference(
    name: str, *, current: str | None, over: str | None, voltage: str | None, with_meter: bool = False
) -> TypedReference | None:
    """The readings to type at each point, from the stated accuracies; None: no reading is typed.

    `over`: "OHM,ACCURACY" of a resistor. `with_meter`: the current comes from another meter.
    Raises: BadInput: an accuracy is missing or invalid.
    """
    of_voltage = Accuracy.of(voltage, "V") if voltage else None
    if with_meter:
        if current or over:
            raise BadInput("--reference-meter gives the current: leave out --current and --over")
        if of_voltage is None:
            return None
        typed = multimeter("voltmeter", current=None, voltage=of_voltage, stated=f"voltage {voltage}")
        return TypedReference(typed, asks_current=False)
    if bool(current) == bool(over):
        raise BadInput("the reference's accuracy is missing: give one of --current and --over (--help)")
    if current:
        stated = f"current {current}" + (f", voltage {voltage}" if voltage else "")
        known = multimeter(name, current=Accuracy.of(current, "A"), voltage=of_voltage, stated=stated)
        return TypedReference(known)
    ohm_text, _, resistor = str(over).partition(",")
    try:
        ohm = float(ohm_text)
    except ValueError:
        ohm = 0.0
    if not 1e-4 <= ohm <= 1e3 or not resistor:
        raise BadInput(f"--over {over}: write --over OHM,ACCURACY, for example 0.1,0.1%")
    if of_voltage is None:
        needed = "also needs the voltmeter's accuracy: give --voltage, for example 0.05%+1mV"
        raise BadInput(f"--over {over} {needed}")
    stated = f"voltage {voltage}, resistor {ohm:g} ohm {resistor}"
    of_resistor = Accuracy.of(resistor, "ohm")
    known = over_resistor(name, ohm=ohm, resistor=of_resistor, voltage=of_voltage, stated=stated)
    return TypedReference(known, over_ohm=ohm)


def _asked(ask: Ask, quantity: TypedQuantity, words: str = "") -> Typed:
    what, unit = words or quantity.value[0], quantity.value[1]
    prompts = Prompts(lambda question: ask(question, quantity))
    try:
        return prompts.value(f"  {what} [{unit}]", lambda answer: reading(answer, unit))
    except Stopped:
        raise BadInput(f"the input ended before the {what} was typed: the point is not used") from None
