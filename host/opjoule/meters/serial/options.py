"""The options in serial:PORT,KEY=VALUE, which say what the sensor is and how it converts."""

from typing import Annotated, Any

from msgspec import Meta

from opjoule.base.settings import named, written
from opjoule.energy.error_bounds import Shunt
from opjoule.meters.chips import ADC_CODES, INA219
from opjoule.meters.interface import MeterOptions
from opjoule.meters.messages import Mode

SHUNT, TOLERANCE, SHUNT_PPM, KELVIN, GENUINE = "shunt", "shunt_tolerance", "shunt_ppm", "kelvin", "genuine"
"""Names of the options that describe a sensor's breakout."""
SIMULATED_SENSOR = "shunt=0.1,shunt_tolerance=1%,kelvin=yes,genuine=yes"
"""Options of a simulated rig's sensor, as a user would write them for a breakout with a marked shunt."""
_RANGES_MV = {f"{shunt_range.max_v * 1e3:.0f}": round(shunt_range.max_v * 1e3) for shunt_range in INA219.ranges}


def _each(text: str) -> list[str]:
    return text.split("+")


def _shares(text: str) -> list[float]:
    return [float(part.removesuffix("%")) * (0.01 if part.endswith("%") else 1.0) for part in _each(text)]


def _places(text: str) -> list[str]:
    parts = _each(text)
    if len(set(parts)) < len(parts):
        raise ValueError
    return parts


_Byte = Annotated[int, Meta(ge=0, le=255, description="a whole number from 0 to 255")]
_YesOrNo = Annotated[bool, named({"yes": True, "no": False})]
_Ohms = Annotated[
    tuple[Annotated[float, Meta(ge=1e-4, le=10)], ...],
    written(_each, "0.0001 to 10 ohm, 0.02 for R020; several sensors: 0.02+0.1"),
]
_Tolerances = Annotated[
    tuple[Annotated[float, Meta(ge=0, le=0.2)], ...], written(_shares, "at most 0.2; for 1 % write 0.01 or 1%")
]
_Sensors = Annotated[
    tuple[Annotated[int, Meta(ge=0)], ...], written(_places, "the sensors' numbers, each once, for example 0+1")
]


class ChipOptions(MeterOptions, frozen=True, kw_only=True):
    """What the user knows of a breakout with a sensor chip."""

    shunt: _Ohms | None = None
    """Resistance of each sensor's shunt [ohm]; the last one also of those after it."""
    shunt_tolerance: _Tolerances | None = None
    shunt_ppm: Annotated[float, Meta(ge=0, le=5000, description="0 to 5000 ppm per kelvin")] | None = None
    kelvin: _YesOrNo = False
    """Whether the shunt is sensed at its own pads."""
    genuine: _YesOrNo = False
    """Whether the chip is certainly its maker's."""


class SerialOptions(ChipOptions, frozen=True, kw_only=True):
    """What the sensors are, and how they convert; None leaves it to board and chip."""

    sensors: _Sensors = (0,)
    """Numbers of the recorded sensors, by their places on the bus; the first one is in the board's supply."""
    mode: Annotated[Mode, named({"shunts": Mode.SHUNTS, "pairs": Mode.PAIRS})] | None = None
    adc: Annotated[int, named(ADC_CODES)] | None = None
    range: Annotated[int, named(_RANGES_MV)] | None = None
    """Shunt voltage [mV]; the chip's narrowest range that covers it is used."""
    adc_code: _Byte | None = None
    bus_every: _Byte | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The requested settings, by the names of SensorSettings; `range_mv` and `adc_code` wait for the chip."""
        asked = {
            "mode": self.mode,
            "shunt_adc": self.adc,
            "bus_adc": self.adc,
            "range_mv": self.range,
            "adc_code": self.adc_code,
            "bus_every": self.bus_every,
        }
        return {name: value for name, value in asked.items() if value is not None}


def shunts(options: ChipOptions, stated_in: str = "the meter's name") -> tuple[Shunt, ...]:
    """The shunts of the recorded sensors, in their order."""
    ohms, tolerances = options.shunt or (Shunt.ohm,), options.shunt_tolerance or (Shunt.tolerance,)
    origin = _origin(options.shunt is not None, options.shunt_tolerance is not None, stated_in)
    per_k = Shunt.per_k if options.shunt_ppm is None else options.shunt_ppm * 1e-6
    return tuple(
        Shunt(ohms[min(n, len(ohms) - 1)], tolerances[min(n, len(tolerances) - 1)], origin, per_k, options.kelvin)
        for n in range(max(len(ohms), len(tolerances)))
    )


def _origin(ohm: bool, tolerance: bool, stated_in: str) -> str:
    if ohm:
        return f"shunt= in {stated_in}" + ("" if tolerance else ", its tolerance assumed: unmarked")
    return Shunt.origin + (f"; its tolerance stated in {stated_in}" if tolerance else "")
