"""The options in serial:PORT,KEY=VALUE, which set how the sensor converts."""

from typing import Any

from opjoule.base.errors import BadInput
from opjoule.energy.error_bounds import SHUNT_PER_K, Shunt
from opjoule.meters.chips.ina219 import ADC_CODES, INA219
from opjoule.meters.messages import Mode

_RANGES_MV = {f"{shunt_range.max_v * 1e3:.0f}": round(shunt_range.max_v * 1e3) for shunt_range in INA219.ranges}
_CHOICES: dict[str, dict[str, int]] = {
    "mode": {"shunts": Mode.SHUNTS, "pairs": Mode.PAIRS},
    "adc": ADC_CODES,
    "range": _RANGES_MV,  # shunt voltage [mV]; the chip's narrowest range that covers it is used
}
_FIELDS = {
    "mode": ("mode",),
    "adc": ("shunt_adc", "bus_adc"),
    "range": ("range_mv",),
    "adc_code": ("adc_code",),
    "bus_every": ("bus_every",),
}
SENSORS = "sensors"
SHUNT, TOLERANCE = "shunt", "shunt_tolerance"
SHUNT_PPM, KELVIN, GENUINE = "shunt_ppm", "kelvin", "genuine"
CHIP_OPTIONS = (SHUNT, TOLERANCE, SHUNT_PPM, KELVIN, GENUINE)
OPTIONS = (*_FIELDS, SENSORS, *CHIP_OPTIONS)
SHUNT_LEAST_OHM, SHUNT_MOST_OHM = 1e-4, 10.0
TOLERANCE_MOST = 0.2
PPM_MOST = 5000.0
SIMULATED_SENSOR = "shunt=0.1,shunt_tolerance=1%,kelvin=yes,genuine=yes"
"""Options of a simulated rig's sensor, as a user would write them for a breakout with a marked shunt."""


def sensor_numbers(options: dict[str, str]) -> tuple[int, ...]:
    """Numbers of the recorded sensors, by their places on the bus; the first one is in the board's supply.

    Takes `sensors=0+1` out of the options. Raises: BadInput: not such a list, or a number occurs twice.
    """
    text = options.pop(SENSORS, "0")
    parts = text.split("+")
    if not all(part.isdigit() for part in parts) or len(set(parts)) < len(parts):
        raise BadInput(f"meter option {SENSORS}={text}: write their numbers, for example {SENSORS}=0+1")
    return tuple(int(part) for part in parts)


def shunts(options: dict[str, str], stated_in: str = "the meter's name") -> tuple[Shunt, ...]:
    """The shunts of the recorded sensors, in their order.

    Takes `shunt=0.02` (or `0.02+0.1`), `shunt_tolerance=0.005` (or `0.5%`), `shunt_ppm=75` and `kelvin=yes` out of the
    options.

    Raises: BadInput: not a number, or a value that no shunt has.
    """
    origin = _origin(SHUNT in options, TOLERANCE in options, stated_in)
    ohms = [_number(SHUNT, text) for text in options.pop(SHUNT, str(Shunt.ohm)).split("+")]
    tolerances = [
        _number(TOLERANCE, text.removesuffix("%")) * (0.01 if text.endswith("%") else 1.0)
        for text in options.pop(TOLERANCE, str(Shunt.tolerance)).split("+")
    ]
    for ohm in ohms:
        if not SHUNT_LEAST_OHM <= ohm <= SHUNT_MOST_OHM:
            raise BadInput(
                f"meter option {SHUNT}={ohm:g}: must be {SHUNT_LEAST_OHM:g} to {SHUNT_MOST_OHM:g} ohm; for R020 write "
                f"{SHUNT}=0.02"
            )
    for tolerance in tolerances:
        if not 0 <= tolerance <= TOLERANCE_MOST:
            raise BadInput(
                f"meter option {TOLERANCE}={tolerance:g}: must be at most {TOLERANCE_MOST:g}; for 1 % write 0.01 or 1%"
            )
    per_k, kelvin = _per_k(options), yes_or_no(KELVIN, options)
    return tuple(
        Shunt(ohms[min(n, len(ohms) - 1)], tolerances[min(n, len(tolerances) - 1)], origin, per_k, kelvin)
        for n in range(max(len(ohms), len(tolerances)))
    )


def _per_k(options: dict[str, str]) -> float:
    if SHUNT_PPM not in options:
        return SHUNT_PER_K
    ppm = _number(SHUNT_PPM, options.pop(SHUNT_PPM))
    if not 0 <= ppm <= PPM_MOST:
        raise BadInput(f"meter option {SHUNT_PPM}={ppm:g}: must be 0 to {PPM_MOST:g} ppm per kelvin")
    return ppm * 1e-6


def yes_or_no(key: str, options: dict[str, str]) -> bool:
    """Takes KEY=yes or KEY=no out of the options; False if it is absent. Raises: BadInput: another value."""
    text = options.pop(key, "no")
    if text not in ("yes", "no"):
        raise BadInput(f"meter option {key}={text}: write {key}=yes or {key}=no")
    return text == "yes"


def _origin(ohm: bool, tolerance: bool, stated_in: str) -> str:
    if ohm:
        return f"shunt= in {stated_in}" + ("" if tolerance else ", its tolerance assumed: unmarked")
    return Shunt.origin + (f"; its tolerance stated in {stated_in}" if tolerance else "")


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"meter option {key}={text}: '{text}' is not a number") from None


def setting_changes(options: dict[str, str]) -> dict[str, Any]:
    """The requested settings, by the names of SensorSettings; the others keep the defaults of board and chip.

    `range_mv` and `adc_code` become settings once the chip is known. Takes them out of the options.

    Raises: BadInput: a value does not exist.
    """
    changes: dict[str, Any] = {}
    for key, names in _FIELDS.items():
        if key in options:
            changes |= dict.fromkeys(names, _value(key, options.pop(key)))
    return changes


def _value(key: str, text: str) -> int:
    if key in _CHOICES:
        if text not in _CHOICES[key]:
            raise BadInput(f"meter option {key}={text}: must be one of {', '.join(_CHOICES[key])}")
        return _CHOICES[key][text]
    if not text.isdigit() or int(text) > 255:
        raise BadInput(f"meter option {key}={text}: must be a whole number from 0 to 255")
    return int(text)
