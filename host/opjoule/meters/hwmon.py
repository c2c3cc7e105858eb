"""Sensors with a Linux driver: INA2xx by hwmon (ina2xx) or industrial I/O (ina2xx-adc), POWER-Z by hwmon."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput, MeterFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, ErrorBounds, Shunt
from opjoule.meters.chips import INA219
from opjoule.meters.interface import LOAD_SIDE, Address, MeterIdentity, MeterKind, SensorIdentity, ShuntOf, Wishes
from opjoule.meters.km003c import km003c_sensor
from opjoule.meters.polling import ON_BOARD, PolledMeter, Reading, Source
from opjoule.meters.serial.options import ChipOptions, shunts

HWMON: Final = Path("/sys/class/hwmon")
IIO: Final = Path("/sys/bus/iio/devices")
RANGE_V: Final = {
    **dict.fromkeys(("ina219", "ina220"), 0.32),
    **dict.fromkeys(("ina226", "ina230", "ina231"), 0.08192),
    "ina3221": 0.1638,
    **dict.fromkeys(("ina228", "ina237", "ina238"), 0.16384),
}
"""Known chips -> shunt voltage at the end of the range that their driver sets [V].

Source: Linux, drivers/hwmon/ina2xx.c (configuration 0x399F for the INA219), ina3221.c, ina238.c; TI's data sheets.
"""
WINDOW_S: Final = dict.fromkeys(("ina228", "ina237", "ina238"), 16 * 3 * 1052e-6)
"""Chips -> length of the mean that their driver sets, where no file states it [s]: 16 conversions each of shunt
voltage, bus voltage and temperature. Source: Linux, drivers/hwmon/ina238.c (configuration 0xFB6A)."""
POWERZ: Final = "powerz"
"""ChargerLAB's USB tester. VBUS is in0; in1 is a CC pin. The sign of the current depends on how it is plugged in.

Source: Linux, drivers/hwmon/powerz.c.
"""
_POWERZ_BOUNDS: Final = replace(km003c_sensor(), current_step_a=1e-3, voltage_step_v=1e-3, seen_fraction=0.05)
KERNEL_SHUNT_OHM: Final = 0.01
"""The driver's default (ina2xx.c); the common INA219 breakout has 0.1."""
PERIOD_S: Final = 0.02
"""A reading over the kernel's I2C driver takes 1 to 2 ms; more frequent readings would mostly measure themselves."""


@dataclass(frozen=True)
class _Files:
    """Files of current and voltage, with the value of one count of each."""

    chip: str
    place: Path
    current: Path
    voltage: Path
    current_a: float
    voltage_v: float
    shunt_ohm: float | None
    """Shunt set in the driver; None if the driver does not state it or has none."""
    window_s: float
    """Length of the means that the chip forms [s]; 0: single conversions of at most 2 ms."""

    @property
    def names(self) -> set[str]:
        """Names by which a user may select it, the empty one included: it selects an only sensor."""
        return {"", self.chip, self.place.name, str(self.place)}

    @property
    def end_a(self) -> float:
        """The driver's current at the end of the range [A]; infinite if the shunt is not known."""
        if self.chip == POWERZ:
            return _POWERZ_BOUNDS.current_max_a
        return RANGE_V[self.chip] / self.shunt_ohm if self.shunt_ohm else math.inf


@dataclass(eq=False)
class HwmonSource(Source):
    """One sensor of the running board. A reading is its latest value, not the mean since the last reading."""

    wanted: str = ""
    hwmon: Path = HWMON
    iio: Path = IIO
    shunt: Shunt | None = field(default=None, kw_only=True)
    """The shunt that is soldered in; currents are corrected if the driver is set to another one."""
    genuine: bool = field(default=False, kw_only=True)
    """True if the chip is known to be the maker's own, not a copy."""
    _files: _Files | None = field(default=None, init=False)

    period_s = PERIOD_S
    mean_since_last = False

    def open(self) -> MeterIdentity:
        """Finds the sensor.

        Raises: MeterFault: there is none, or a shunt is stated and the driver does not state its own. BadInput:
        several sensors, and none was named.
        """
        channels = [*_hwmon(self.hwmon), *_iio(self.iio)]
        chosen = [channel for channel in channels if self.wanted in channel.names]
        if not chosen:
            listed = ", ".join(f"{channel.chip} at {channel.place.name}" for channel in channels) or "none"
            raise MeterFault(
                f"hwmon: no INA2xx or POWER-Z{' called ' + self.wanted if self.wanted else ''} (found: {listed}): "
                "load its driver (dtoverlay or modprobe ina2xx)"
            )
        if len(chosen) > 1:
            names = ", ".join(channel.place.name for channel in chosen)
            raise BadInput(f"hwmon: several sensors ({names}); name one, for example hwmon:{chosen[0].place.name}")
        self._files = chosen[0]
        if self.shunt and self._files.shunt_ohm is None and self._files.chip != POWERZ:
            raise MeterFault(
                f"hwmon: {self._files.chip} at {self._files.place}: its driver does not state its shunt, so "
                f"shunt={self.shunt.ohm:g} cannot correct the current: set shunt-resistor = "
                f"<{self.shunt.ohm * 1e6:.0f}> in its device tree node"
            )
        self.window_s = self._files.window_s
        self.read()
        has_shunt, shunt_ohm = self._files.chip != POWERZ, self._files.shunt_ohm
        doubtful = _doubtful_shunt(shunt_ohm, self.shunt) if has_shunt else []
        return MeterIdentity(
            kind="hwmon",
            place=str(self._files.place),
            board="this board's kernel",
            tick_hz=1_000_000_000,
            sensors=(SensorIdentity(self._files.chip, 0),),
            voltage_at=LOAD_SIDE,
            notes=(
                f"at most one reading every {PERIOD_S * 1e3:g} ms, each {_window_words(self.window_s)}",
                f"current in steps of {self._files.current_a * self._factor * 1e3:g} mA",
                *([_shunt_words(shunt_ohm, self.shunt)] if shunt_ohm and not doubtful else []),
                ON_BOARD,
            ),
            notices=tuple(doubtful),
        )

    def read(self) -> Reading:
        """The present values."""
        if self._files is None:
            raise MeterFault("hwmon: not open")
        try:
            amperes = float(self._files.current.read_text()) * self._files.current_a
            volts = float(self._files.voltage.read_text()) * self._files.voltage_v
        except (OSError, ValueError) as error:
            raise MeterFault(f"hwmon: {self._files.place} cannot be read ({error}): check its wiring") from None
        if self._files.chip == POWERZ:
            amperes = abs(amperes)
        clipped = amperes >= self._files.end_a - self._files.current_a
        return Reading(amperes * self._factor, volts, clipped)

    @property
    def _factor(self) -> float:
        """Ratio of the true current to the driver's, which divides by the shunt it is set to."""
        driver_ohm = self._files.shunt_ohm if self._files else None
        return driver_ohm / self.shunt.ohm if driver_ohm and self.shunt else 1.0

    def error_bounds(self) -> ErrorBounds:
        """The INA219 breakout's bounds with the driver's shunt and steps, and with one reading a period."""
        if self._files and self._files.chip == POWERZ:
            return _POWERZ_BOUNDS
        driver_ohm = self._files.shunt_ohm if self._files else None
        origin = "the kernel driver's setting" if driver_ohm else "assumed: the driver does not state it"
        shunt = (driver_ohm and self.shunt) or Shunt(driver_ohm or Shunt.ohm, origin=origin)
        bounds = INA219.error_bounds(INA219.ranges[-1].code, 5e-4 / PERIOD_S, shunt, genuine=self.genuine)
        step_a = self._files.current_a * self._factor if self._files else 1e-3
        step_v = self._files.voltage_v if self._files else 1e-3
        step_shunt_v = max(INA219.ranges[-1].step_v, step_a * shunt.ohm)
        most_a = self._files.end_a * self._factor if self._files and driver_ohm else bounds.current_max_a
        return replace(
            bounds,
            current_step_a=step_shunt_v / shunt.ohm,
            voltage_step_v=max(bounds.voltage_step_v, step_v),
            current_max_a=most_a,
            clock_error_max=CRYSTAL_ERROR_MAX,
        )


def _hwmon(root: Path) -> list[_Files]:
    """Sensors of hwmon drivers, in milliamperes and millivolts. For an INA2xx, in1 is the bus and in0 the shunt."""
    channels = []
    for folder in sorted(root.glob("hwmon*")):
        chip = _text(folder / "name")
        current = folder / "curr1_input"
        voltage = folder / ("in0_input" if chip == POWERZ else "in1_input")
        if (chip in RANGE_V or chip == POWERZ) and current.exists() and voltage.exists():
            shunt_ohm = _driver_ohm(folder, chip)
            window_s = _number(folder / "update_interval", 1e-3) or WINDOW_S.get(chip, 0.0)
            channels.append(_Files(chip, folder, current, voltage, 1e-3, 1e-3, shunt_ohm, window_s))
    return channels


def _driver_ohm(folder: Path, chip: str) -> float | None:
    """The shunt that a hwmon driver divides by [ohm]; None if no file states it.

    Source: Linux, hwmon/ina2xx.rst, ina3221.rst; ina238.c has no such file and takes the device tree's 32-bit number.
    """
    stated = _number(folder / ("shunt1_resistor" if chip == "ina3221" else "shunt_resistor"), 1e-6)
    if stated is not None:
        return stated
    try:
        cell = (folder / "device/of_node/shunt-resistor").read_bytes()
    except OSError:
        return None
    return int.from_bytes(cell, "big") * 1e-6 or None


def _iio(root: Path) -> list[_Files]:
    """Sensors of the industrial I/O driver: raw counts with a scale to mA and mV."""
    channels = []
    for folder in sorted(root.glob("iio:device*")):
        chip = _text(folder / "name")
        current, voltage = folder / "in_current3_raw", folder / "in_voltage1_raw"
        if chip in RANGE_V and current.exists() and voltage.exists():
            names = "in_current3_scale", "in_voltage1_scale"
            scales = [float(_text(folder / name) or 1) * 1e-3 for name in names]
            shunt_ohm = _number(folder / "in_shunt_resistor", 1.0)
            rate_hz = _number(folder / "in_sampling_frequency", 1.0)
            window_s = 1 / rate_hz if rate_hz else 0.0
            channels.append(_Files(chip, folder, current, voltage, scales[0], scales[1], shunt_ohm, window_s))
    return channels


def _window_words(window_s: float) -> str:
    if not window_s:
        return "an instantaneous value: short bursts are missed"
    return f"the chip's latest mean of {window_s * 1e3:.3g} ms; its time is known to within {window_s * 500:.3g} ms"


def _shunt_words(driver_ohm: float, soldered: Shunt | None) -> str:
    if soldered is None:
        return f"shunt {driver_ohm:g} ohm, as set in the driver"
    factor = driver_ohm / soldered.ohm
    return f"shunt {soldered.ohm:g} ohm; the driver is set to {driver_ohm:g}: currents are corrected by {factor:g}"


def _doubtful_shunt(driver_ohm: float | None, soldered: Shunt | None) -> list[Notice]:
    """The notice of a shunt that nobody has stated."""
    if driver_ohm is None:
        line = "the driver does not state its shunt, so every current may be wrong by a constant factor"
        return [Notice(NoticeKind.SHUNT, line, "set shunt-resistor in its device tree node")]
    if soldered or not math.isclose(driver_ohm, KERNEL_SHUNT_OHM):
        return []
    line = (
        f"the driver assumes a shunt of {driver_ohm:g} ohm, its default. With the usual 0.1 ohm (R100) every current "
        f"is {Shunt.ohm / driver_ohm:g} times too high, with 0.02 ohm (R020) 2 times"
    )
    return [Notice(NoticeKind.SHUNT, line, "state yours, for example hwmon:hwmon3,shunt=0.1")]


def _number(path: Path, unit: float) -> float | None:
    """A positive number in a file, times `unit`; None if there is none. Source: Linux, hwmon/ina2xx.rst."""
    try:
        value = float(_text(path)) * unit
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _hwmon_meter(address: Address, _: Wishes) -> PolledMeter:
    options: ChipOptions = address.options
    shunt = shunts(options)[0] if options.shunt else None
    return PolledMeter(HwmonSource(address.place, shunt=shunt, genuine=options.genuine))


KIND: Final = MeterKind(
    name="hwmon",
    written="hwmon or hwmon:hwmon3,shunt=0.1 (an INA2xx or POWER-Z that this computer's kernel drives)",
    make=_hwmon_meter,
    samples="50/s, instantaneous values or the chip's means",
    runs_on="the board that is measured; a POWER-Z: the computer that it is plugged into",
    needs="the kernel's driver for an INA2xx, or `powerz` for a ChargerLAB KM003C",
    shunt_of=ShuntOf.DRIVER,
    options=ChipOptions,
)
