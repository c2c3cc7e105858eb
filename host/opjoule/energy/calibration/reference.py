"""References for a sensor: a multimeter, resistors of known value, another meter of the rig; readings that are typed.

A reference's gain and zero errors are common to all points, so that more points do not average them out. The rounding
of its last digit and the noise of its samples differ from point to point.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Self

import numpy as np

from opjoule.base.errors import BadInput
from opjoule.base.terminal import Prompts, Stopped
from opjoule.energy.error_bounds import HEAT, POWER, SQRT3, VOLTAGE, ErrorBounds
from opjoule.energy.sensor_calibration import PARAMETERS, UNLIMITED, Correction, SensorCalibration

CERTIFICATE: Final = "k=2"
HEATED_A: Final = 1.5
"""Current for which the self-heating of an uncalibrated reference's shunt is counted."""
_PARTS: Final = re.compile(r"(?i)^\s*(\d+(?:\.\d*)?(?:e-?\d+)?)\s*(%|ppm|[munµ]?[AVΩ]|[mu]?ohm)?\s*$")
_SCALE: Final = {"%": 1e-2, "ppm": 1e-6}
_PREFIX: Final = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}


@dataclass(frozen=True)
class Accuracy:
    """Standard uncertainties that all readings of one kind share."""

    relative: float
    absolute: float
    """[A], [V] or [ohm]"""

    @classmethod
    def of(cls, text: str, unit: str) -> Self:
        """Parses "0.05%+2mV", as a maker or a certificate states it.

        A maker's bounds count as rectangular distributions; a certificate's expanded uncertainty ends with "k=2".

        Raises: BadInput: the text has another form, or the accuracy is 0 or above 20 %.
        """
        words, certified, _ = text.partition(CERTIFICATE)
        sums = {"relative": 0.0, "absolute": 0.0}
        for part in words.rstrip(" ,").split("+"):
            kind, value = _part(part, unit, text)
            sums[kind] += value
        if not sum(sums.values()) > 0 or sums["relative"] > 0.2:
            raise BadInput(f"accuracy '{text}': must be above 0 and at most 20 %, for example 0.05%+2m{unit}")
        factor = 0.5 if certified else 1.0 / SQRT3
        return cls(sums["relative"] * factor, sums["absolute"] * factor)


def _part(part: str, unit: str, text: str) -> tuple[str, float]:
    match = _PARTS.match(part)
    if match:
        number, ending = float(match[1]), match[2] or ""
        if ending in _SCALE:
            return "relative", number * _SCALE[ending]
        prefix = ending.lower().removesuffix(unit.lower()) if ending else "-"
        if ending.lower().endswith(unit.lower()) and prefix in {"", *_PREFIX}:
            return "absolute", number * _PREFIX.get(prefix, 1.0)
    raise BadInput(f"accuracy '{text}': write it as its maker does, for example 0.05%+2m{unit}, or 0.1% k=2")


@dataclass(frozen=True)
class CommonError:
    """An error of a reference that is common to all points: one standard uncertainty, with its sign."""

    name: str
    current_share: float = 0.0
    """relative error of the current"""
    current_a: float = 0.0
    voltage_share: float = 0.0
    """relative error of the voltage"""
    voltage_v: float = 0.0

    def effect(self, current: Correction, voltage: Correction) -> tuple[float, ...]:
        """Change of a sensor's fitted parameters (in the order of PARAMETERS) by this error."""
        return (
            self.current_share * current.gain,
            self.voltage_share * voltage.gain,
            self.current_share * current.offset + self.current_a,
            self.voltage_share * voltage.offset + self.voltage_v,
            0.0,
        )


@dataclass(frozen=True)
class Reference:
    """The reference of the points."""

    name: str
    """Name for the reader: model and serial number."""
    stated: str
    """The reference's stated uncertainty, in words."""
    common: tuple[CommonError, ...]
    measures_voltage: bool = True

    def current_u_a(self, current_a: float) -> float:
        """Standard uncertainty of a current [A] from errors that all points share."""
        return math.hypot(*(error.current_share * current_a + error.current_a for error in self.common))

    def voltage_u_v(self, voltage_v: float) -> float:
        """Standard uncertainty of a voltage [V] from errors that all points share."""
        return math.hypot(*(error.voltage_share * voltage_v + error.voltage_v for error in self.common))


def multimeter(name: str, *, current: Accuracy | None, voltage: Accuracy | None, stated: str) -> Reference:
    """One or two multimeters whose errors of current and voltage are independent."""
    common = []
    if current:
        common += [CommonError(f"{name}: current, share", current_share=current.relative)]
        common += [CommonError(f"{name}: current, fixed", current_a=current.absolute)]
    if voltage:
        common += [CommonError(f"{name}: voltage, share", voltage_share=voltage.relative)]
        common += [CommonError(f"{name}: voltage, fixed", voltage_v=voltage.absolute)]
    return Reference(name, stated, _alive(common), measures_voltage=voltage is not None)


def over_resistor(name: str, *, ohm: float, resistor: Accuracy, voltage: Accuracy, stated: str) -> Reference:
    """A voltmeter that reads the board's voltage, and the drop over a known series resistor to get the current.

    A relative error of a single voltmeter affects current and voltage alike, and the power twice.
    """
    share, resistor_share = voltage.relative, math.hypot(resistor.relative, resistor.absolute / ohm)
    common = [
        CommonError(f"{name}: voltage, share", current_share=share, voltage_share=share),
        CommonError(f"{name}: voltage, fixed", current_a=voltage.absolute / ohm, voltage_v=voltage.absolute),
        CommonError(f"{name}: resistor", current_share=resistor_share),
    ]
    return Reference(name, stated, _alive(common))


def other_meter(name: str, bounds: ErrorBounds) -> Reference:
    """Another meter of the rig in series; if it is calibrated, with the uncertainties of its calibration.

    Raises: BadInput: it measures only power.
    """
    if POWER in bounds.gain_errors_max:
        raise BadInput(f"reference {name} measures power only: it cannot calibrate current and voltage")
    if bounds.calibration:
        common = _of_calibration(bounds.calibration)
        common += _voltage_bound(name, bounds) if bounds.calibration.voltage is None else []
        return Reference(name, f"calibrated: {bounds.calibration.identity}", _alive(common))
    current_max = math.hypot(*(b for source, b in bounds.gain_errors_max.items() if source != VOLTAGE))
    common = [
        CommonError(f"{name}: current, share", current_share=current_max / SQRT3),
        CommonError(f"{name}: current, fixed", current_a=bounds.current_offset_u_a),
        CommonError(f"{name}: {HEAT}", current_share=bounds.heating_max_per_a2 * HEATED_A**2 / SQRT3),
        *_voltage_bound(name, bounds),
    ]
    stated = (
        f"as delivered: current {100 * current_max:.3g} % and {bounds.current_offset_max_a * 1e3:.3g} mA, "
        f"voltage {100 * bounds.voltage_gain_error_max:.3g} %"
    )
    return Reference(name, stated, _alive(common))


def _voltage_bound(name: str, bounds: ErrorBounds) -> list[CommonError]:
    return [
        CommonError(f"{name}: voltage, share", voltage_share=bounds.voltage_gain_error_max / SQRT3),
        CommonError(f"{name}: voltage, fixed", voltage_v=bounds.voltage_rounding_u_v),
    ]


def _of_calibration(calibration: SensorCalibration) -> list[CommonError]:
    """Common errors of a calibrated reference: the error sources of its calibration, under the same names."""
    voltage = calibration.voltage or Correction()
    low_a, high_a = (_at(calibration, share) for share in (0.25, 1.0))
    columns = {
        name: [calibration.contributions(np.eye(len(PARAMETERS))[parameter])[name][1] for parameter in (1, 3)]
        for name in calibration.contributions(np.zeros(len(PARAMETERS)))
    }
    errors = []
    for name, (voltage_gain, offset_v) in columns.items():
        share = (high_a[1][name] - low_a[1][name]) / (high_a[0] - low_a[0])
        of_current = share, low_a[1][name] - share * low_a[0]
        voltage_v = offset_v - voltage_gain * voltage.offset / voltage.gain
        errors.append(CommonError(name, *of_current, voltage_gain / voltage.gain, voltage_v))
    drift = CommonError(f"{calibration.identity}: drift", current_share=calibration.gain_drift_u)
    return [*errors, drift]


def _at(calibration: SensorCalibration, share: float) -> tuple[float, dict[str, float]]:
    """A share of the greatest calibrated current (1 A if there is no range) [A], and each source's error there [A]."""
    current = calibration.current
    reading_a = share * (current.most if current.most < UNLIMITED else 1.0)
    at = calibration.sensitivity(reading_a, calibration.steady_warmth_a2(reading_a))
    contributions = {name: part_a for name, (_, part_a) in calibration.contributions(at).items()}
    return calibration.steady_current_a(reading_a), contributions


def _alive(common: list[CommonError]) -> tuple[CommonError, ...]:
    return tuple(e for e in common if any((e.current_share, e.current_a, e.voltage_share, e.voltage_v)))


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
