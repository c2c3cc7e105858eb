"""rig.toml: the boards, media and meter of one rig.

[meter]
port = "serial:/dev/ttyACM0,shunt=0.1"

[supply]                            # what is known of it; without, the drop is that of the shunt alone
voltage_v = 5.1                     # without load
cable_ohm = 0.1                     # of all between supply and board but the shunt, both ways

[device.rpi4]
connection = "ssh:pi@raspberrypi"   # or "local": this computer is the board
ssh_options = ["-p", "2222"]        # further options for ssh, an argument each
sync = "gpio:GPIO17"                # a line's name, gpio:CHIP:LINE, gpio:sysfs:NUMBER, or "none"
cpufreq = "/sys/devices/system/cpu" # where this kernel has its CPU settings
mongod = "/opt/mongodb/bin/mongod"  # the server program on the board, where it is not on the PATH

[device.rpi4.storage]
sd = "/home/pi/opjoule"             # a directory on the medium
ssd-usb3 = { path = "/mnt/ssd", device = "/dev/disk/by-id/usb-Samsung_850", expendable = true }

[device.rpi4.state]                 # docs/how-to/prepare-the-board.md
governor = "performance"
memory_mb = 1024
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opjoule.devices.medium import Medium
from opjoule.devices.state_settings import StateSettings
from opjoule.devices.sync_pin import check_sync
from opjoule.errors import BadInput
from opjoule.suggestion import unknown

CPUFREQ = "/sys/devices/system/cpu"
RIG_BYTES_MAX = 1 << 20
_DEVICE_KEYS = {
    "connection",
    "ssh_options",
    "sync",
    "cpufreq",
    "mongod",
    "mongod_options",
    "storage",
    "state",
}
_SUPPLY_KEYS = {"voltage_v": (1.0, 60.0), "cable_ohm": (0.0, 5.0)}
"""Least and greatest of what can be meant."""
_MEDIUM_KEYS = {"path", "device", "expendable"}


@dataclass(frozen=True)
class RigDevice:
    """One board of the rig, as rig.toml describes it."""

    connection: str = "local"
    sync: str | None = None
    storage: dict[str, Medium] = field(default_factory=dict)
    """Media by their name, as --storage takes it."""
    ssh_options: tuple[str, ...] = ()
    cpufreq: str = CPUFREQ
    mongod: str = "mongod"
    """The server program on the board."""
    mongod_options: tuple[str, ...] = ()
    state: StateSettings = field(default_factory=StateSettings)
    """The state the board is measured in."""

    @property
    def ssh_target(self) -> str | None:
        """Where ssh connects to; None when this computer is the board."""
        return self.connection.removeprefix("ssh:") if self.connection.startswith("ssh:") else None


@dataclass(frozen=True)
class RigSupply:
    """The supply and its wiring, as far as rig.toml tells."""

    voltage_v: float | None = None
    """Without load [V]."""
    cable_ohm: float | None = None
    """Of all that lies between supply and board but the shunt: fuse, plugs, cable, both ways [ohm]."""


@dataclass(frozen=True)
class Rig:
    """The whole of rig.toml."""

    path: Path
    meter: str
    devices: dict[str, RigDevice]
    supply: RigSupply = field(default_factory=RigSupply)

    def device(self, name: str) -> RigDevice:
        """The board called `name`.

        Raises: BadInput: rig.toml does not describe it.
        """
        if name not in self.devices:
            raise BadInput(
                f"{self.path}: {unknown('device', name, sorted(self.devices))}; add [device.{name}]"
            )
        return self.devices[name]


def read_rig(path: Path) -> Rig:
    """Reads and checks rig.toml.

    Raises: BadInput: no such file, not TOML, or a key that is missing, unknown or of the wrong type.
    """
    data = _read_toml(path)
    meter = data.get("meter", {}).get("port") if isinstance(data.get("meter"), dict) else None
    if not isinstance(meter, str):
        raise BadInput(f'{path}: [meter] port is missing; write for example port = "serial:/dev/ttyACM0"')
    devices = data.get("device", {})
    if not isinstance(devices, dict):
        raise BadInput(f"{path}: [device.NAME] must be a table")
    described = {name: _device(path, name, table) for name, table in devices.items()}
    return Rig(path, meter, described, _supply(path, data.get("supply", {})))


def _read_toml(path: Path) -> dict[str, Any]:
    again = "'host/measure.py init' writes a new one"
    try:
        if not path.exists():
            raise BadInput(
                f"{path} is not there: describe your rig with 'host/measure.py init'; "
                "without hardware, measure with --simulate"
            )
        if not path.is_file():
            raise BadInput(f"{path} is not a file: {again}")
        if (size := path.stat().st_size) > RIG_BYTES_MAX:
            raise BadInput(f"{path} has {size} bytes, a description of a rig a few hundred: {again}")
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        name = _with_control_character(data, "")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; {again}") from None
    except RecursionError:
        raise BadInput(f"{path} cannot be read: its tables are nested too deep; {again}") from None
    except ValueError as error:  # no TOML, no UTF-8, or a number of thousands of digits
        raise BadInput(f"{path} cannot be read: {error}; {again}") from None
    if name is not None:
        raise BadInput(f"{path}: {name or 'a key'} holds a control character")
    return data


def _with_control_character(value: Any, name: str) -> str | None:
    """Name of the first entry with a letter in it that no path or address has; None if there is none."""
    if isinstance(value, str):
        return name if any(ord(letter) < 32 or ord(letter) == 127 for letter in value) else None
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [
            *((name, key) for key in value),
            *((f"{name}.{key}".lstrip("."), value[key]) for key in value),
        ]
    elif isinstance(value, list):
        parts = [(name, each) for each in value]
    found = (_with_control_character(each, inner) for inner, each in parts)
    return next((where for where in found if where is not None), None)


def _supply(path: Path, table: Any) -> RigSupply:
    if not isinstance(table, dict):
        raise BadInput(f"{path}: [supply] must be a table")
    for key, value in table.items():
        if key not in _SUPPLY_KEYS:
            raise BadInput(f"{path}: [supply] {unknown('key', key, sorted(_SUPPLY_KEYS))}")
        low, high = _SUPPLY_KEYS[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise BadInput(f"{path}: [supply] {key} must be a number from {low:g} to {high:g}, not {value!r}")
    return RigSupply(**{key: float(value) for key, value in table.items()})


def _device(path: Path, name: str, table: Any) -> RigDevice:
    if not isinstance(table, dict):
        raise BadInput(f"{path}: [device.{name}] must be a table")
    for key in table:
        if key not in _DEVICE_KEYS:
            raise BadInput(f"{path}: [device.{name}] {unknown('key', key, sorted(_DEVICE_KEYS))}")
    for key in ("connection", "sync", "cpufreq", "mongod"):
        if not isinstance(table.get(key, ""), str):
            raise BadInput(f"{path}: [device.{name}] {key} must be text in quotes, not {table[key]!r}")
    connection = table.get("connection", "local")
    if connection != "local" and not connection.startswith("ssh:"):
        raise BadInput(
            f'{path}: [device.{name}] connection = "{connection}" is neither "local" nor "ssh:user@host"'
        )
    for key, example in (("ssh_options", '["-p", "2222"]'), ("mongod_options", '["--nojournal"]')):
        options = table.get(key, [])
        if not (isinstance(options, list) and all(isinstance(option, str) for option in options)):
            raise BadInput(f"{path}: [device.{name}] {key} must be a list of texts, for example {example}")
    if "sync" in table:
        try:
            check_sync(table["sync"])
        except BadInput as error:
            raise BadInput(f"{path}: [device.{name}] {error}") from None
    storage, state = table.get("storage", {}), table.get("state", {})
    if not isinstance(storage, dict):
        raise BadInput(f'{path}: [device.{name}.storage] needs lines like sd = "/mnt/sd/opjoule"')
    if not isinstance(state, dict):
        raise BadInput(f"{path}: [device.{name}.state] must be a table")
    return RigDevice(
        connection=connection,
        sync=table.get("sync"),
        storage={medium: _medium(path, name, medium, value) for medium, value in storage.items()},
        ssh_options=tuple(table.get("ssh_options", [])),
        mongod=table.get("mongod", "mongod"),
        mongod_options=tuple(table.get("mongod_options", [])),
        cpufreq=table.get("cpufreq", CPUFREQ),
        state=StateSettings().changed(state, f"{path}: [device.{name}.state]"),
    )


def _medium(path: Path, name: str, medium: str, value: Any) -> Medium:
    where = f"{path}: [device.{name}.storage] {medium}"
    if isinstance(value, str):
        value = {"path": value}
    if not isinstance(value, dict):
        raise BadInput(f'{path}: [device.{name}.storage] needs lines like {medium} = "/mnt/{medium}/opjoule"')
    for key in value:
        if key not in _MEDIUM_KEYS:
            raise BadInput(f"{where}: {unknown('key', key, sorted(_MEDIUM_KEYS))}")
    place, device, expendable = value.get("path"), value.get("device", ""), value.get("expendable", False)
    if not isinstance(place, str) or not place.startswith("/"):
        raise BadInput(
            f'{where}: path must be an absolute directory of the board, for example path = "/mnt/{medium}"'
        )
    if not isinstance(device, str) or (device and not device.startswith("/dev/")):
        raise BadInput(f'{where}: device must be a name under /dev, for example "/dev/disk/by-id/..."')
    if not isinstance(expendable, bool):
        raise BadInput(f"{where}: expendable must be true or false")
    if expendable and not device:
        raise BadInput(f"{where}: expendable = true needs the device that may be overwritten")
    return Medium(place.rstrip("/") or "/", device, expendable)
