"""Path from supply to board: the shunt, the voltage drop at the board's peak, and remedies."""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

from opjoule.boards.profiles import Profile
from opjoule.boards.rig import RigSupply
from opjoule.energy.error_bounds import Shunt
from opjoule.meters.interface import ShuntOf
from opjoule.meters.registry import address_of
from opjoule.meters.serial.options import shunts

RIG_FILE: Final = "rig.toml"
SIMULATED_RIG: Final = "the simulated rig"
ADVISED_SHUNT_OHM: Final = 0.02
SMALL_SHUNT: Final = f"a shunt of {ADVISED_SHUNT_OHM * 1e3:g} milliohm (0.5 %, 2 W)"
THICK_CABLE: Final = "a shorter, thicker cable"
OWN_SHUNT: Final = "the meter's own"
OF_THE_DRIVER: Final = "the driver's, read when the meter is opened"


@dataclass(frozen=True)
class SupplyPath:
    """Supply, shunt and wiring in front of one board, as far as known."""

    profile: Profile
    supply_v: float | None
    """Voltage without load [V]: as stated, or the value that the board's maker requires."""
    stated: bool
    """Whether the supply's voltage was stated."""
    cable_ohm: float | None
    shunt_ohm: float | None
    """None: the meter has its own, which the user does not choose, or it is not known yet."""
    shunt_tolerance: float | None
    shunt_from: str
    sense_ohm: float | None = None
    """Resistance between the voltage's sense point and the board, both ways; None: unknown."""

    @property
    def drop_v(self) -> float | None:
        """Voltage drop over shunt and wiring at the board's peak current [V]; None if that current is unknown."""
        if self.profile.peak_current_a is None:
            return None
        return self.profile.peak_current_a * ((self.shunt_ohm or 0.0) + (self.cable_ohm or 0.0))

    @property
    def board_v(self) -> float | None:
        """Voltage at the board at its peak current [V]."""
        return None if self.drop_v is None or self.supply_v is None else self.supply_v - self.drop_v

    @property
    def shunt_words(self) -> str:
        """The shunt, with its tolerance and the source of that."""
        if self.shunt_ohm is None:
            return self.shunt_from
        return shunt_words(self.shunt_ohm, self.shunt_tolerance or 0.0, self.shunt_from)

    @property
    def supply_words(self) -> str:
        """The drop and the remaining voltage, in one line."""
        if self.drop_v is None or self.board_v is None:
            why = f"because the peak current of a {self.profile.title} is not"
            return f"the voltage drop before the board is not known, {why}"
        shunt = f"{self.shunt_ohm:g} ohm of shunt" if self.shunt_ohm is not None else "the meter's own shunt"
        known = self.cable_ohm is not None
        cable = f"{self.cable_ohm:g} ohm of wiring" if known else "wiring of unknown resistance"
        limit = self.profile.least_voltage_v
        return (
            f"{self.supply_v:g} V ({'as stated' if self.stated else 'its nominal voltage'}) minus {self.drop_v:.2f} V "
            f"{'' if known else 'or more '}({self.profile.peak_current_a:g} A through {shunt} and {cable}) "
            f"{'leaves' if known else 'leaves at most'} {self.board_v:.2f} V at the board"
            + (f", whose limit is {limit:g} V" if limit else "")
        )

    @property
    def warning(self) -> str:
        """One line if the voltage is below the board's limit; else empty."""
        limit = self.profile.least_voltage_v
        if limit is None or self.board_v is None or self.board_v >= limit - 1e-9:
            return ""
        return (
            f"at its peak of {self.profile.peak_current_a:g} A the board gets only {self.board_v:.2f} V, and "
            f"its limit is {limit:g} V: {self.remedy}"
        )

    @property
    def remedy(self) -> str:
        """Remedy that raises the voltage at the board."""
        highest_v = self.profile.supply_voltage_v[1]
        ways, left_v = [], None
        if (self.shunt_ohm or 0.0) > ADVISED_SHUNT_OHM:
            ways, left_v = [SMALL_SHUNT], replace(self, shunt_ohm=ADVISED_SHUNT_OHM).board_v
        ways += [f"a supply of {highest_v:g} V"] if (self.supply_v or 0.0) < highest_v else []
        alone = "" if left_v is None else f" (the shunt alone leaves {left_v:.2f} V)"
        note = f"; {self.profile.supply_note}" if self.profile.supply_note else ""
        return ", ".join([*ways, THICK_CABLE]) + alone + note

    def measured(self, shunt: Shunt | None) -> Self:
        """The path with the shunt that the opened meter reports, if it reports one."""
        if shunt is None:
            return self
        origin = shunt.origin or self.shunt_from
        return replace(self, shunt_ohm=shunt.ohm, shunt_tolerance=shunt.tolerance, shunt_from=origin)

    def to_json(self) -> dict[str, Any]:
        """The supply path in the form of run.json."""
        return {
            "shunt_ohm": self.shunt_ohm,
            "shunt_tolerance": self.shunt_tolerance,
            "shunt_from": self.shunt_from,
            "supply_v": self.supply_v,
            "supply_v_stated": self.stated,
            "cable_ohm": self.cable_ohm,
            "sense_ohm": self.sense_ohm,
            "peak_current_a": self.profile.peak_current_a,
            "least_voltage_v": self.profile.least_voltage_v,
            "board_v": self.board_v,
            "remedy": self.remedy,
        }


def shunt_words(ohm: float, tolerance: float, origin: str) -> str:
    """For example "0.02 ohm ±0.5 %, shunt= in rig.toml"."""
    return f"{ohm:g} ohm \N{PLUS-MINUS SIGN}{100 * tolerance:g} %, {origin or 'origin not recorded'}"


def stated_in(meter: str | None) -> str:
    """Source of the meter's name: the command line, if it is given there."""
    return "--meter" if meter else RIG_FILE


def supply_path(profile: Profile, meter: str, stated_in: str, supply: RigSupply) -> SupplyPath:
    """Supply path before the meter is opened, with the shunt and voltage given by the meter's name."""
    address = address_of(meter)
    kind = address.kind
    shunt = shunts(address.options, stated_in)[0] if kind.shunt_of is ShuntOf.USER else None
    stated_v = (address.options.voltage if kind.states_voltage else None) or supply.voltage_v
    unknown = OF_THE_DRIVER if kind.shunt_of is ShuntOf.DRIVER else OWN_SHUNT
    return SupplyPath(
        profile=profile,
        supply_v=stated_v or profile.nominal_voltage_v,
        stated=stated_v is not None,
        cable_ohm=supply.cable_ohm,
        shunt_ohm=shunt.ohm if shunt else None,
        shunt_tolerance=shunt.tolerance if shunt else None,
        shunt_from=shunt.origin if shunt else unknown,
        sense_ohm=supply.sense_ohm,
    )


def local_meter_warning(connection: str, meter: str) -> str:
    """One line if the measured board itself reads a meter over a cable; else empty."""
    draw = address_of(meter).kind.draw
    if connection != "local" or draw is None:
        return ""
    return (
        'connection = "local": this board reads its own meter, so every figure includes the meter '
        f"({draw}) and the processor time of capturing (unknown). A constant part cancels above "
        'idle. Measure from another computer to avoid this (connection = "ssh:...")'
    )
