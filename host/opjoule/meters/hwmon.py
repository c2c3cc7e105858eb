"""INA2xx sensors that Linux drives itself: hwmon (ina2xx) or industrial I/O (ina2xx-adc)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.energy.sensor import CRYSTAL_ERROR_MAX, SensorModel, ina219_breakout
from opjoule.errors import BadInput, MeterFault
from opjoule.meters.interface import MeterIdentity, SensorIdentity
from opjoule.meters.polled import ON_BOARD, Reading

HWMON: Final = Path("/sys/class/hwmon")
IIO: Final = Path("/sys/bus/iio/devices")
CHIPS: Final = ("ina219", "ina220", "ina226", "ina230", "ina231", "ina3221", "ina228", "ina238", "ina237")
PERIOD_S: Final = 0.02
"""A reading over the kernel's I2C driver takes 1 to 2 ms; more often would mostly measure itself."""


@dataclass(frozen=True)
class _Files:
    """Where current and voltage are read, and what one count of each is."""

    chip: str
    place: Path
    current: Path
    voltage: Path
    current_a: float
    voltage_v: float


class HwmonSource:
    """One sensor of the running board: the value at the moment of the poll, not the mean since the last."""

    period_s = PERIOD_S
    mean_since_last = False

    def __init__(self, wanted: str = "", hwmon: Path = HWMON, iio: Path = IIO) -> None:
        self._wanted, self._hwmon, self._iio = wanted, hwmon, iio
        self._files: _Files | None = None

    def open(self) -> MeterIdentity:
        """Finds the sensor. Raises: MeterFault: there is none. BadInput: several, and none was named."""
        found = [*_hwmon(self._hwmon), *_iio(self._iio)]
        chosen = [each for each in found if self._wanted in {"", each.chip, each.place.name, str(each.place)}]
        if not chosen:
            listed = ", ".join(f"{each.chip} at {each.place.name}" for each in found) or "none"
            raise MeterFault(
                f"hwmon: no INA2xx{' called ' + self._wanted if self._wanted else ''} (found: {listed}): "
                "load its driver (dtoverlay or modprobe ina2xx)"
            )
        if len(chosen) > 1:
            names = ", ".join(each.place.name for each in chosen)
            raise BadInput(
                f"hwmon: several sensors ({names}); name one, for example hwmon:{chosen[0].place.name}"
            )
        self._files = chosen[0]
        self.read()
        return MeterIdentity(
            kind="hwmon",
            place=str(self._files.place),
            protocol_version=0,
            firmware_version="",
            board="this board's kernel",
            serial_number="",
            reset_cause="",
            tick_hz=1_000_000_000,
            sensors=(SensorIdentity(self._files.chip, 0),),
            notes=(
                f"one reading each {PERIOD_S * 1e3:g} ms at most, each of one moment: short bursts are missed",
                f"current in steps of {self._files.current_a * 1e3:g} mA; the shunt is what the driver was told",
                ON_BOARD,
            ),
        )

    def read(self) -> Reading:
        """The present values."""
        if self._files is None:
            raise MeterFault("hwmon: not open")
        try:
            amperes = float(self._files.current.read_text()) * self._files.current_a
            volts = float(self._files.voltage.read_text()) * self._files.voltage_v
        except (OSError, ValueError) as error:
            raise MeterFault(
                f"hwmon: {self._files.place} cannot be read ({error}): check its wiring"
            ) from None
        return Reading(amperes, volts)

    def sensor_model(self) -> SensorModel:
        """The INA219 breakout's bounds, with the driver's steps and what one reading a period sees."""
        chip = ina219_breakout()
        model = vars(chip)
        step_a = self._files.current_a if self._files else 1e-3
        step_v = self._files.voltage_v if self._files else 1e-3
        seen = {"shunt_lsb_v": max(model["shunt_lsb_v"], step_a * (chip.shunt_ohm or 0.0))}
        return SensorModel(
            **{
                **model,
                **seen,
                "bus_lsb_v": max(model["bus_lsb_v"], step_v),
                "seen_fraction": 5e-4 / PERIOD_S,
                "clock_error_max": CRYSTAL_ERROR_MAX,
            }
        )


def _hwmon(root: Path) -> list[_Files]:
    """Sensors of the hwmon driver: milliamperes and millivolts; in1 is the bus, in0 the shunt."""
    found = []
    for folder in sorted(root.glob("hwmon*")):
        chip = _text(folder / "name")
        current, voltage = folder / "curr1_input", folder / "in1_input"
        if chip in CHIPS and current.exists() and voltage.exists():
            found.append(_Files(chip, folder, current, voltage, 1e-3, 1e-3))
    return found


def _iio(root: Path) -> list[_Files]:
    """Sensors of the industrial I/O driver: raw counts with a scale to mA and mV."""
    found = []
    for folder in sorted(root.glob("iio:device*")):
        chip = _text(folder / "name")
        current, voltage = folder / "in_current3_raw", folder / "in_voltage1_raw"
        if chip in CHIPS and current.exists() and voltage.exists():
            scales = [
                float(_text(folder / f"{name}_scale") or 1) * 1e-3 for name in ("in_current3", "in_voltage1")
            ]
            found.append(_Files(chip, folder, current, voltage, scales[0], scales[1]))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
