"""Which meter a name like serial:/dev/ttyACM0 means."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from opjoule.clocks.host_clock import MONOTONIC, HostClock
from opjoule.energy.error_bounds import Shunt
from opjoule.errors import BadInput
from opjoule.meters.chips.chip import SensorSettings
from opjoule.meters.hwmon import HwmonSource
from opjoule.meters.interface import Meter, MeterIdentity
from opjoule.meters.joulescope import JoulescopeMeter
from opjoule.meters.monsoon import MonsoonMeter, MonsoonSettings
from opjoule.meters.pmic import PROGRAM, PmicSource
from opjoule.meters.polled import PolledMeter
from opjoule.meters.ppk2 import Ppk2Meter
from opjoule.meters.rapl import ROOT, RaplSource
from opjoule.meters.serial_meter import SerialMeter
from opjoule.meters.serial_options import (
    GENUINE,
    LABEL,
    SHUNT,
    sensor_numbers,
    setting_changes,
    shunts,
    split_options,
    yes_or_no,
)

KINDS = {
    "serial": "serial:PORT, for example serial:/dev/ttyACM0 or serial:/dev/ttyACM0,shunt=0.02,shunt_tolerance=0.5%",
    "monsoon": "monsoon:voltage=5.1,limit=4 or monsoon:model=lvpm,channel=usb",
    "ppk2": "ppk2:PORT,voltage=5.1",
    "joulescope": "joulescope or joulescope:SERIAL",
    "rapl": "rapl (this computer's processor)",
    "hwmon": "hwmon or hwmon:hwmon3,shunt=0.1 (an INA2xx or POWER-Z that this computer's kernel drives)",
    "pmic": "pmic (this Raspberry Pi 5's power chip)",
}
"""Kind -> how it is written."""
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,47}")


@dataclass(frozen=True)
class Address:
    """A meter's name taken apart."""

    name: str
    kind: str
    place: str
    options: dict[str, str]

    @classmethod
    def of(cls, name: str) -> "Address":
        """KIND[:PLACE][,KEY=VALUE...]; the first part is a place unless it has a '='.

        Raises: BadInput: an unknown kind, or an option without '='.
        """
        kind, _, rest = name.partition(":")
        if kind not in KINDS:
            raise BadInput(f"meter '{name}': unknown kind '{kind}'; there is {'; '.join(KINDS.values())}")
        if kind == "serial":
            return cls(name, kind, *split_options(rest))
        parts = rest.split(",") if rest else []
        place = parts.pop(0) if parts and "=" not in parts[0] else ""
        options: dict[str, str] = {}
        for part in parts:
            key, equals, value = part.partition("=")
            if not equals:
                raise BadInput(f"meter '{name}': '{part}' is not KEY=VALUE; write {KINDS[kind]}")
            options[key.strip()] = value.strip()
        return cls(name, kind, place, options)

    def needed_place(self) -> str:
        """The place. Raises: BadInput: there is none."""
        if not self.place:
            raise BadInput(f"meter '{self.name}': no port; write {KINDS[self.kind]}")
        return self.place

    def take(self, key: str) -> str | None:
        """An option, which is then done with."""
        return self.options.pop(key, None)

    def take_number(self, key: str) -> float | None:
        """An option that is a number. Raises: BadInput."""
        text = self.take(key)
        try:
            return None if text is None else float(text)
        except ValueError:
            raise BadInput(f"meter '{self.name}': {key}={text} is not a number") from None

    def take_label(self) -> str:
        """What the user calls the meter, which is then done with; empty if it has no label. Raises: BadInput."""
        label = self.take(LABEL) or ""
        if label and not _LABEL.fullmatch(label):
            raise BadInput(
                f"meter '{self.name}': {LABEL}={label}: letters, digits, '.', '_' and '-', at most 48, for example "
                f"{LABEL}=bench-1"
            )
        return label

    def check_done(self) -> None:
        """Raises: BadInput: an option that nobody took."""
        if self.options:
            raise BadInput(
                f"meter '{self.name}': unknown option '{next(iter(self.options))}'; write {KINDS[self.kind]}"
            )


def open_meter(
    name: str,
    *,
    settings: SensorSettings | None = None,
    supply_v: tuple[float, float] | None = None,
    stated_in: str = "the meter's name",
    clock: HostClock = MONOTONIC,
) -> Meter:
    """The meter of this name, not yet connected.

    Args:
        name: KIND[:PLACE][,KEY=VALUE...].
        settings: serial: how its sensor converts; 12-bit shunt, the bus each 128th time, by default.
        supply_v: least and greatest supply voltage of the board [V], for meters that supply it.
        stated_in: where the user wrote the name.
        clock: serial: what it times with.
    Raises: BadInput: an unknown kind, no place where one is needed, or an option that is unknown or impossible.
    """
    address = Address.of(name)
    address.take_label()
    if address.kind == "serial":
        sensors = sensor_numbers(address.options)
        resistors = shunts(address.options, stated_in)
        genuine = yes_or_no(GENUINE, address.options)
        changes = setting_changes(address.options)
        place = address.needed_place()
        return SerialMeter(
            place,
            settings=settings,
            changes=changes,
            sensors=sensors,
            shunts=resistors,
            genuine=genuine,
            clock=clock,
        )
    meter = _MAKERS[address.kind](address, supply_v)
    address.check_done()
    return meter


def named_shunt(name: str, stated_in: str) -> Shunt | None:
    """The shunt of the board's supply as far as the meter's name tells, before it is opened.

    Returns: None for a meter that does not leave it to the user; `hwmon` reads it from its driver.
    Raises: BadInput: as open_meter().
    """
    address = Address.of(name)
    return shunts(address.options, stated_in)[0] if address.kind == "serial" else None


def sensor_ids(name: str, identity: MeterIdentity) -> tuple[str, ...]:
    """What the sensors that a meter records are called, in their order: its label, else its own serial number.

    The chips of a serial meter have their addresses behind its label. Its own number is the controller's: other
    breakouts may be plugged to it, and an ATmega328P's is documented for its successor alone (DS40001906C, 32.5).

    Returns: empty strings where neither is known.
    Raises: BadInput: as open_meter().
    """
    address = Address.of(name)
    label = address.take_label()
    if address.kind == "serial":
        places = sensor_numbers(address.options)
        return tuple(label and f"{label}@0x{identity.sensors[place].address:02x}" for place in places)
    number = re.sub(r"[^A-Za-z0-9_.-]", "-", identity.serial_number)
    return (label or (f"{address.kind}-{number}" if number else ""),)


def named_voltage(name: str) -> float | None:
    """The voltage [V] that a meter which supplies the board is set to by its name; None if it does not say.

    Raises: BadInput: as open_meter().
    """
    address = Address.of(name)
    return address.take_number("voltage") if address.kind in {"monsoon", "ppk2"} else None


def _monsoon(address: Address, supply_v: tuple[float, float] | None) -> Meter:
    chosen = MonsoonSettings(
        model=address.take("model") or "hvpm",
        serial_number=address.place or None,
        channel=address.take("channel") or "main",
        voltage_v=address.take_number("voltage"),
        limit_a=address.take_number("limit"),
        passthrough=address.take("usb"),
        supply_v=supply_v,
    )
    return MonsoonMeter(chosen)


def _hwmon(address: Address) -> Meter:
    named = SHUNT in address.options
    [shunt] = shunts(address.options)[:1]
    genuine = yes_or_no(GENUINE, address.options)
    return PolledMeter(HwmonSource(address.place, shunt=shunt if named else None, genuine=genuine))


Maker = Callable[[Address, tuple[float, float] | None], Meter]
_MAKERS: dict[str, Maker] = {
    "monsoon": _monsoon,
    "ppk2": lambda address, _: Ppk2Meter(address.needed_place(), address.take_number("voltage")),
    "joulescope": lambda address, _: JoulescopeMeter(address.place),
    "rapl": lambda address, _: PolledMeter(RaplSource(Path(address.place) if address.place else ROOT)),
    "hwmon": lambda address, _: _hwmon(address),
    "pmic": lambda address, _: PolledMeter(PmicSource(address.place or PROGRAM)),
}
"""Kind -> what makes its meter; of an address's options it takes those it knows."""
