"""What is known of the sensor behind a trace: bounds of its errors, and its range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from opjoule.errors import RecordFault

SQRT3 = math.sqrt(3.0)
CRYSTAL_ERROR_MAX = 160e-6
"""Relative bound of a computer's or an instrument's undisciplined crystal, rectangular.

Half of the values then lie beyond 80 ppm, as in a survey of 20,000 hosts (median 78 ppm: Mills, Computer Network Time
Synchronization, 2006, chapter 15). Time that is being slewed right now can be 500 ppm off (RFC 5905, MAXFREQ).
"""
RESONATOR_ERROR_MAX = 8e-3
"""Relative bound of a ceramic resonator, which an Arduino Uno's controller runs on: 0.5 % as made, 0.2 % with
temperature, 0.1 % in ten years (Murata CERALOCK CSTCE-V53, catalogue P16E)."""
CUT_OR_ROUNDED_U = 0.5 / math.sqrt(2.0)
"""Standard uncertainty, in steps, of codes that may be cut (half a step too low in the mean) or rounded, each as
likely: neither the data sheets of the INA219, INA226 and INA228 nor their drivers say which."""


@dataclass(frozen=True)
class SensorModel:
    """Error bounds of a current and voltage sensor, spec-sheet values when it is not calibrated.

    Bounds are half-widths of rectangular distributions (JCGM 100:2008, 4.3.7); a calibration replaces those
    of gain and offset by its own standard uncertainties.
    """

    shunt_ohm: float | None
    """None for a meter that states the errors of its current itself: see `without_shunt`."""
    shunt_tolerance: float
    """Relative bound of the shunt's value, for example 0.01."""
    gain_error_max: float
    """Relative bound of the current channel's gain error, shunt apart."""
    offset_v_max: float
    """Bound of the shunt voltage's offset [V]."""
    shunt_lsb_v: float
    bus_lsb_v: float
    bus_gain_error_max: float
    """Relative bound of the bus voltage's gain error."""
    current_max_a: float
    """Upper end of the range; a lost conversion cannot have held more."""
    current_min_a: float = 0.0
    """Lower end of what can flow: a board's supply current does not reverse."""
    seen_fraction: float = 0.5
    """Part of the time in which the current is converted: 0.5 in shunt+bus mode, 1 in shunt-only mode."""
    clock_error_max: float = RESONATOR_ERROR_MAX
    """Relative bound of the meter's own oscillator; it counts where no better clock gives the seconds."""
    current_offset_max_a: float | None = None
    """Bound of the current's offset [A], of a meter without a shunt."""
    current_step_a: float | None = None
    """One step of the current [A], of a meter without a shunt."""
    shunt_from: str | None = None
    """Who says what the shunt is."""
    calibration: str | None = None
    """Identity of the calibration that was applied to the trace; None for spec-sheet values."""
    calibrated_power_gain_u: float | None = None
    """Relative standard uncertainty of power after calibration."""
    calibrated_offset_u_a: float | None = None
    """Standard uncertainty of the current's offset after calibration [A]."""

    @classmethod
    def without_shunt(
        cls,
        *,
        current_gain_error_max: float,
        current_offset_max_a: float,
        current_step_a: float,
        voltage_gain_error_max: float,
        voltage_step_v: float,
        current_max_a: float,
        seen_fraction: float,
        clock_error_max: float,
    ) -> SensorModel:
        """A meter that states bounds of its current as a whole, whatever it measures it with."""
        return cls(
            shunt_ohm=None,
            shunt_tolerance=0.0,
            gain_error_max=current_gain_error_max,
            offset_v_max=0.0,
            shunt_lsb_v=0.0,
            bus_lsb_v=voltage_step_v,
            bus_gain_error_max=voltage_gain_error_max,
            current_max_a=current_max_a,
            seen_fraction=seen_fraction,
            clock_error_max=clock_error_max,
            current_offset_max_a=current_offset_max_a,
            current_step_a=current_step_a,
        )

    @property
    def power_gain_u(self) -> float:
        """Relative standard uncertainty of power from every gain: shunt, current channel, bus."""
        if self.calibrated_power_gain_u is not None:
            return self.calibrated_power_gain_u
        return math.hypot(self.shunt_tolerance, self.gain_error_max, self.bus_gain_error_max) / SQRT3

    @property
    def current_offset_u_a(self) -> float:
        """Standard uncertainty of the current's offset [A]; that the codes may be cut, not rounded, is one."""
        if self.calibrated_offset_u_a is not None:
            return self.calibrated_offset_u_a
        cut_u_a = 0.0 if self.calibration else self.current_lsb_a * CUT_OR_ROUNDED_U
        return math.hypot(self.current_offset_bound_a / SQRT3, cut_u_a)

    @property
    def current_offset_bound_a(self) -> float:
        """Bound of the current's offset [A], uncalibrated."""
        if self.shunt_ohm is None:
            return self.current_offset_max_a or 0.0
        return self.offset_v_max / self.shunt_ohm

    @property
    def bus_rounding_u_v(self) -> float:
        """Standard uncertainty of the voltage [V] because its codes may be cut, not rounded; a calibration has it."""
        return 0.0 if self.calibration else self.bus_lsb_v * CUT_OR_ROUNDED_U

    @property
    def current_lsb_a(self) -> float:
        """One step of the current [A]."""
        if self.shunt_ohm is None:
            return self.current_step_a or 0.0
        return self.shunt_lsb_v / self.shunt_ohm

    def to_json(self) -> dict[str, Any]:
        """As it stands in run.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> SensorModel:
        """The model that `to_json` wrote.

        Raises: RecordFault: a field is missing or unknown.
        """
        try:
            return cls(**entry)
        except TypeError as fault:
            raise RecordFault(f"sensor in run.json: {fault}") from None


INA219_OFFSET_MAX_V = {1: (100e-6, 50e-6), 2: (125e-6, 75e-6), 4: (150e-6, 75e-6), 8: (200e-6, 100e-6)}
"""Divider of the range -> bound of the shunt voltage's offset [V], A and B grade (SBOS448G, 7.5)."""


def ina219_breakout(*, b_grade: bool = False, seen_fraction: float = 0.5, pga: int = 8) -> SensorModel:
    """The common INA219 breakout: 0.1 ohm 1 % shunt, uncalibrated.

    Args:
        pga: divider of the shunt range, 1, 2, 4 or 8: +-40 mV times pga.
    Source: TI SBOS448G (INA219), 7.5 Electrical Characteristics, 25 degrees C; docs/reference/sensors.md.
    """
    return SensorModel(
        shunt_ohm=0.1,
        shunt_tolerance=0.01,
        gain_error_max=0.003 if b_grade else 0.005,
        offset_v_max=INA219_OFFSET_MAX_V[pga][1 if b_grade else 0],
        shunt_lsb_v=10e-6,
        bus_lsb_v=4e-3,
        bus_gain_error_max=0.005,
        current_max_a=0.04 * pga / 0.1,
        seen_fraction=seen_fraction,
    )
