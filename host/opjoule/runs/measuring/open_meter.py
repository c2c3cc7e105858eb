"""An open, configured meter, with the names, error bounds and calibrations of its sensors."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from opjoule.base.errors import BadInput
from opjoule.base.notices import Notice
from opjoule.boards.medium import Medium
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.calibration.calibration_file import FoundCalibration, find_calibration
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.meters.interface import Meter, MeterIdentity
from opjoule.meters.medium_meter import WithMediumMeter
from opjoule.meters.registry import sensor_ids
from opjoule.runs.measuring.recording import Recording
from opjoule.runs.record.run import MediumSensor


@dataclass(frozen=True)
class Calibrations:
    """Folder of the calibrations, and the temperature of the room in which they are used."""

    folder: Path
    temperature_c: float | None = None
    """None: unknown."""

    def of(self, bounds: ErrorBounds, *, simulated: bool) -> FoundCalibration | None:
        """A sensor's calibration; None if there is none. Raises: as find_calibration()."""
        return find_calibration(self.folder, bounds, simulated=simulated, temperature_c=self.temperature_c)


@dataclass(frozen=True)
class KnownSensors:
    """Known properties of the sensors of one opened meter."""

    bounds: Mapping[int, ErrorBounds]
    """Number (0: the board's supply) -> error bounds, with name and calibration if there are any."""
    found: Mapping[int, FoundCalibration]
    medium_number: int | None = None
    """Number of the sensor that is a separate meter in the medium's supply; None if there is none."""

    @classmethod
    def of(cls, meter: Meter, name: str, identity: MeterIdentity, calibrations: Calibrations | None) -> Self:
        """Names the sensors and looks for their calibrations.

        Args:
            name: address under which the meter was opened; empty: the sensors keep the names that they have.
            calibrations: None: none is searched for.
        Raises: BadInput: an unreadable calibration. CalibrationFault: calibration of another sensor or setting.
        """
        delivered = {0: meter.error_bounds(), **meter.further_error_bounds()}
        names = sensor_ids(name, identity) if name else ()
        bounds = {
            number: replace(sensor, sensor_id=names[number] if number < len(names) else sensor.sensor_id)
            for number, sensor in delivered.items()
        }
        applied = {}
        if calibrations:
            for number, sensor in bounds.items():
                calibration = calibrations.of(sensor, simulated=identity.simulated)
                if calibration:
                    applied[number] = calibration
                    bounds[number] = calibration.of(sensor, calibrations.temperature_c)
        return cls(bounds, applied, meter.number if isinstance(meter, WithMediumMeter) else None)

    def wired(self, sense_ohm: float | None) -> Self:
        """The sensors with this wire resistance between the first one and the board, both ways; None: unknown."""
        return replace(self, bounds={**self.bounds, 0: self.bounds[0].wired(sense_ohm)})

    def of_medium(self, medium: Medium) -> MediumSensor | None:
        """The sensor in the medium's own supply, if any; a meter of the medium takes precedence over rig.toml's sensor.

        Raises: BadInput: the meter does not record it.
        """
        if self.medium_number is not None:
            return MediumSensor(self.medium_number, medium.supply)
        if not medium.sensor:
            return None
        if medium.sensor not in self.bounds:
            numbers = "+".join(map(str, range(medium.sensor + 1)))
            raise BadInput(
                f"the meter does not record sensor {medium.sensor}, which rig.toml gives for the medium {medium.path}: "
                f"name it in [meter] port, for example serial:/dev/ttyACM0,sensors={numbers}"
            )
        return MediumSensor(medium.sensor, medium.supply)

    @property
    def notices(self) -> list[Notice]:
        """Notices of old calibrations and of those made at another temperature."""
        return [notice for calibration in self.found.values() for notice in calibration.notices]

    def entries(self) -> dict[str, Any]:
        """`sensor` of run.json, and `further_sensors` and `found.calibrations` if there are any."""
        other_sensors = {number: sensor for number, sensor in self.bounds.items() if number}
        titles = {self.bounds[number].sensor_id: used.file.title for number, used in self.found.items()}
        return {
            "sensor": self.bounds[0],
            **({"further_sensors": other_sensors} if other_sensors else {}),
            **({"found": {"calibrations": titles}} if titles else {}),
        }


@dataclass(frozen=True)
class OpenMeter:
    """An open, configured meter."""

    name: str
    """Address under which it was opened."""
    meter: Meter
    identity: MeterIdentity
    sensors: KnownSensors

    @property
    def bounds(self) -> ErrorBounds:
        """Error bounds of the first sensor, with its calibration if there is one."""
        return self.sensors.bounds[0]

    def recording(
        self,
        folder: Path,
        board_exchange: Callable[[], Exchange] | None = None,
        tell_fault: Callable[[Notice], object] | None = None,
    ) -> Recording:
        """A recording of the meter into a folder; a `with` block begins it. Arguments as for Recording."""
        return Recording(folder, self.meter, self.name, board_exchange, tell_fault)


@contextmanager
def opened_meter(meter: Meter, name: str, calibrations: Calibrations | None = None) -> Iterator[OpenMeter]:
    """Opens and configures a meter; it is closed at the end of the block.

    Raises: MeterFault: the meter does not answer. BadInput, CalibrationFault: from KnownSensors.of().
    """
    with closing(meter):
        identity = meter.open()
        meter.configure()
        yield OpenMeter(name, meter, identity, KnownSensors.of(meter, name, identity, calibrations))
