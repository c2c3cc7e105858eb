"""A meter's stated errors: gain, offset, steps, range, and the share of the time in which it converts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.shunt_heat import Heating

SQRT3 = math.sqrt(3.0)
CRYSTAL_ERROR_MAX = 160e-6
"""Relative bound of a computer's or an instrument's undisciplined crystal, rectangular.

Half of the values are then beyond 80 ppm, as in a survey of 20,000 hosts (median 78 ppm: Mills, Computer Network Time
Synchronization, 2006, chapter 15). A clock that is being slewed can be 500 ppm off (RFC 5905, MAXFREQ).
"""
RESONATOR_ERROR_MAX = 8e-3
"""Relative bound of a ceramic resonator, the clock of an Arduino Uno's controller: 0.5 % as made, 0.2 % with
temperature, 0.1 % in ten years (Murata CERALOCK CSTCE-V53, catalogue P16E)."""
CUT_OR_ROUNDED_U = 0.5 / math.sqrt(2.0)
"""Standard uncertainty, in steps, of codes that are either truncated (half a step too low on average) or rounded,
both equally likely: neither the data sheets of the INA219, INA226 and INA228 nor their drivers say which."""
SWAPPED = "exchange the wires at VIN+ and VIN\N{MINUS SIGN}"
"""Remedy for a current that flows backwards through a sensor."""
POWER, CURRENT, VOLTAGE, SHUNT = "power", "current", "voltage", "shunt"
COPPER, TEMPERATURE = "copper at the shunt", "temperature"
"""Sources of a gain error."""
HEAT, WIRE = "shunt heating", "wire to the board"
"""Further sources, whose contributions are not proportional to the energy."""
UNMARKED_TOLERANCE = 0.05
"""Tolerance of a shunt without a marking or a stated tolerance: 5 % is the coarsest grade of such chip resistors
(RND 155 2512, "TCR 400 ppm/K, tolerance 5 %"; Yageo RL2512: 1, 2, 5 %)."""
COPPER_MAX_OHM = 5e-4
"""Copper between the shunt and its sense points, unless the shunt is known to be sensed at its own pads: a square of
35 um copper (Stackpole, "Shunt Resistor PCB Layout": 5 milliohm on 10 mm by 1 mm)."""
SHUNT_PER_K = 200e-6
"""Bound of the shunt's relative temperature coefficient [1/K], if unknown: thick film has 100 to 300 ppm
(resistor.com, "Temperature Coefficient of Resistance"), metal strip 75 (Vishay VMN-PL0010)."""
CHIP_PER_K = 10e-6
"""Temperature coefficient of the shunt channel's gain, relative [1/K]: INA219, SBOS448G 7.5, typical."""
ROOM_K = 15.0
"""Bound of the difference between a rig's room, or the box around its breakout, and the data sheets' 25 degrees C."""
SHUNT_K_PER_W = 100.0
"""Upper bound of the thermal resistance of a 2512 shunt on its board: 1 W at 70 and none at 155 degrees C are 85 (RND
155 2512), at 170 degrees C 100 (Vishay WSL2512)."""
WIRE_MAX_OHM = 0.02
"""Resistance between the point where the voltage is sensed and the board, if unknown: 30 cm of AWG 20 both ways (33
milliohm a metre)."""
WIRE_SHARE_U = 0.2
"""Bound of a stated wire's resistance, relative: length and plugs."""


@dataclass(frozen=True)
class Shunt:
    """Shunt resistor of the rig, independent of the chip that measures its voltage."""

    ohm: float = 0.1
    """R100 of the common INA219 breakout; INA226 boards carry 0.002, 0.01 or 0.02 as well"""
    tolerance: float = UNMARKED_TOLERANCE
    """relative bound of its value"""
    origin: str = field(default="assumed: rig.toml has no shunt=", compare=False)
    """source of these values; empty if unknown"""
    per_k: float = SHUNT_PER_K
    """relative bound of its change with temperature [1/K]"""
    kelvin: bool = False
    """whether it is sensed at its own pads, or has four terminals"""

    @property
    def copper(self) -> float:
        """Relative bound of the resistance that copper in the sensed path adds."""
        return 0.0 if self.kelvin else COPPER_MAX_OHM / self.ohm

    @property
    def heating_max_per_a2(self) -> float:
        """Bound of its relative change by self-heating, either sign [1/A^2]."""
        return self.per_k * SHUNT_K_PER_W * self.ohm


@dataclass(frozen=True)
class ErrorBounds:
    """Bounds of a meter's errors as delivered, for any kind of meter.

    Bounds are half-widths of rectangular distributions (JCGM 100:2008, 4.3.7); a calibration replaces those
    of gain and offset by its own standard uncertainties.
    """

    gain_errors_max: Mapping[str, float]
    """Relative bounds of the independent gains whose product scales the power, by source."""
    current_offset_max_a: float
    current_step_a: float
    voltage_step_v: float
    current_max_a: float
    """Upper end of the range; the current of a lost conversion was at most this."""
    seen_fraction: float
    """Part of the time in which the current is converted."""
    clock_error_max: float
    """Relative bound of the meter's own oscillator; used if no better clock gives the seconds."""
    current_min_a: float = 0.0
    """Least current possible: a board's supply current does not reverse."""
    shunt: Shunt | None = None
    """The shunt of these bounds; None for a meter with its own. No figure is computed from it."""
    sensor_id: str = ""
    """Name of the sensor: the meter's serial number or label, and the chip's address; empty if neither is known."""
    model: str = ""
    """Name of the chip, or of the meter."""
    stamp_u_ns: float = 0.0
    """Standard uncertainty of its time stamps on the clock of the board's meter [ns]. 0 if both are one meter, unless
    its samples are means over a time that is not known exactly."""
    calibration: SensorCalibration | None = None
    """Correction applied when the trace is read; None: as delivered."""
    heating_max_per_a2: float = 0.0
    """Bound of the gain's change by the shunt's self-heating, as delivered, either sign [1/A^2]; 0: not stated."""
    wire_ohm: float = 0.0
    """Resistance between the voltage's sense point and the board; a trace is corrected for it when it is read."""
    wire_max_ohm: float = 0.0
    """Bound of the error of `wire_ohm`; 0: not stated."""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Source of an error -> where its bound comes from, in words; no figure is computed from it."""

    @property
    def heating(self) -> Heating:
        """Self-heating of the shunt, as calibrated."""
        return self.calibration.heating if self.calibration else Heating()

    @property
    def heats(self) -> bool:
        """Whether self-heating of the shunt can affect its figures."""
        return self.calibration.heats if self.calibration else self.heating_max_per_a2 > 0.0

    def wired(self, wire_ohm: float | None) -> ErrorBounds:
        """The bounds with a wire of this resistance between sense point and board [ohm], both ways; None: unknown."""
        if wire_ohm is None:
            why = f"assumed: at most {WIRE_MAX_OHM:g} ohm, rig.toml has no [supply] sense_ohm"
            return replace(self, wire_max_ohm=WIRE_MAX_OHM, origins={**self.origins, WIRE: why})
        why = f"sense_ohm = {wire_ohm:g} in rig.toml, within {100 * WIRE_SHARE_U:g} %"
        bound_ohm = WIRE_SHARE_U * wire_ohm
        return replace(self, wire_ohm=wire_ohm, wire_max_ohm=bound_ohm, origins={**self.origins, WIRE: why})

    @property
    def power_gain_u(self) -> float:
        """Relative standard uncertainty of power from every gain, as delivered."""
        return math.hypot(*self.gain_errors_max.values()) / SQRT3

    @property
    def voltage_gain_error_max(self) -> float:
        """Relative bound of the voltage's own gain error."""
        return self.gain_errors_max.get(VOLTAGE, 0.0)

    @property
    def current_offset_u_a(self) -> float:
        """Standard uncertainty of the current's offset [A] as delivered, including possibly truncated codes."""
        return math.hypot(self.current_offset_max_a / SQRT3, self.current_step_a * CUT_OR_ROUNDED_U)

    @property
    def voltage_rounding_u_v(self) -> float:
        """Standard uncertainty of the voltage [V] as delivered, from codes that may be truncated, not rounded."""
        return self.voltage_step_v * CUT_OR_ROUNDED_U

    def is_backwards(self, current_a: float) -> bool:
        """Whether a mean current [A] flows backwards: it is below anything that the sensor reads without a current."""
        return current_a < -(2 * self.current_offset_max_a + self.current_step_a)

    def voltage_u_v(self, voltage_v: float) -> float:
        """Standard uncertainty [V] of a voltage from the sensor's own gain, offset and codes."""
        if self.calibration and self.calibration.voltage:
            return self.calibration.voltage_u_v(voltage_v)
        return math.hypot(voltage_v * self.voltage_gain_error_max / SQRT3, self.voltage_rounding_u_v)
