"""rig.toml: the boards, media and meter of one rig.

[meter]
port = "serial:/dev/ttyACM0,shunt=0.1,label=bench-1"
storage = "fnirsi"                  # a second meter, in the medium's own supply

[room]
temperature_c = 22                  # of a calibrated sensor; default: within 5 K of its calibration's

[supply]                            # may be left out: then only the shunt's drop is known
voltage_v = 5.1                     # without load
cable_ohm = 0.1                     # everything between supply and board except the shunt, both ways
sense_ohm = 0.01                    # the part of cable_ohm after the point where the voltage is sensed

[device.rpi4]
connection = "ssh:pi@raspberrypi"   # or "local": this computer is the board
ssh_options = ["-p", "2222"]        # further options for ssh, one entry an argument
sync = "gpio:GPIO17"                # a line's name, gpio:CHIP:LINE, gpio:sysfs:NUMBER, or "none"
cpufreq = "/sys/devices/system/cpu" # the folder of this kernel's CPU settings
mongod = "/opt/mongodb/bin/mongod"  # the server program on the board, if it is not on the PATH

[device.rpi4.storage]
sd = "/home/pi/opjoule"             # a directory on the medium
ssd-usb3 = { path = "/mnt/ssd", device = "/dev/disk/by-id/usb-Samsung_850", expendable = true }

[device.rpi4.state]                 # docs/how-to/prepare-the-board.md
governor = "performance"
memory_mb = 1024

opjoule-root is made from it, the only program that sudo must allow on a board. It contains the root actions of a
measurement (on_board/steps.sh, state.sh) and the lists of allowed changes. It takes orders, checks each against the
lists, and never executes text that it receives.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from opjoule.base.errors import BadInput, unknown
from opjoule.base.settings import MEDIUM, as_struct, as_table
from opjoule.base.toml_file import read_toml
from opjoule.boards.board_state import StateSettings
from opjoule.boards.changes import STOPPED_UNITS
from opjoule.boards.medium import Medium
from opjoule.boards.shell import script
from opjoule.boards.steps import HELPER, HELPER_PARTS, helper_version

CPUFREQ = "/sys/devices/system/cpu"
RIG_BYTES_MAX = 1 << 20
_TABLES: Final = ("meter", "room", "supply", "device")
_WITH_PASSWORD: Final = re.compile(r"ssh:(//|ssh://)?[^@/]*:[^@/]*@")


class RigDevice(Struct, frozen=True):
    """One board of the rig, as described in rig.toml."""

    connection: Annotated[str, Meta(pattern="^(local$|ssh:)", description='"local" or "ssh:user@host"')] = "local"
    sync: Annotated[str | None, Meta(description="text in quotes")] = None
    media: dict[str, Medium] = field(default={}, name=MEDIUM)
    """Media by name, as --storage takes it."""
    ssh_options: Annotated[tuple[str, ...], Meta(description='a list of texts, for example ["-p", "2222"]')] = ()
    cpufreq: str = CPUFREQ
    mongod: str = ""
    """Path of the server program on the board, if it is not on its PATH."""
    mongod_options: Annotated[tuple[str, ...], Meta(description='a list of texts, for example ["--nojournal"]')] = ()
    state: StateSettings = StateSettings()
    """The state in which the board is measured."""

    @property
    def ssh_target(self) -> str | None:
        """Target of ssh; None if this computer is the board."""
        return self.connection.removeprefix("ssh:") if self.connection.startswith("ssh:") else None


class RigSupply(Struct, frozen=True):
    """The supply and its wiring, as far as rig.toml states them."""

    voltage_v: Annotated[float, Meta(ge=1.0, le=60.0, description="a number from 1 to 60")] | None = None
    """Voltage without load [V]."""
    cable_ohm: Annotated[float, Meta(ge=0.0, le=5.0, description="a number from 0 to 5")] | None = None
    """Resistance of everything between supply and board except the shunt: fuse, plugs, cable, both ways [ohm]."""
    sense_ohm: Annotated[float, Meta(ge=0.0, le=1.0, description="a number from 0 to 1")] | None = None
    """Part of it between the voltage's sense point and the board, both ways [ohm]; its loss is subtracted. None: at
    most 20 milliohm."""


class RigRoom(Struct, frozen=True):
    """Location of the meter, as far as rig.toml states it."""

    temperature_c: Annotated[float, Meta(ge=-40.0, le=85.0, description="a number from -40 to 85")] | None = None
    """Temperature for the sensor's calibration; None: within 5 K of the calibration's own."""


class _Meters(Struct, frozen=True):
    port: Annotated[str | None, Meta(description='text, for example "serial:/dev/ttyACM0"')] = None
    medium: Annotated[str | None, Meta(description='text, for example "fnirsi"')] = field(default=None, name=MEDIUM)


class Rig(Struct, frozen=True):
    """The whole of rig.toml."""

    path: Path
    meter: str
    devices: dict[str, RigDevice]
    supply: RigSupply = RigSupply()
    room: RigRoom = RigRoom()
    medium_meter: str | None = None
    """A second meter, in the medium's own supply; None if there is none."""

    def device(self, name: str) -> RigDevice:
        """The board called `name`. Raises: BadInput: rig.toml does not describe it."""
        if name not in self.devices:
            raise BadInput(f"{self.path}: {unknown('device', name, sorted(self.devices))}; add [device.{name}]")
        return self.devices[name]


def read_rig(path: Path) -> Rig:
    """Reads and checks rig.toml. Raises: BadInput: no such file, not TOML, a missing, unknown or malformed key."""
    data = _read_toml(path)
    for name in data:
        if name not in _TABLES:
            raise BadInput(f"{path}: {unknown('table', name, _TABLES)}")
    meters = as_struct(data.get("meter", {}), _Meters, f"{path}: [meter]")
    if meters.port is None:
        raise BadInput(f'{path}: [meter] port is missing; write for example port = "serial:/dev/ttyACM0"')
    devices = as_table(data.get("device", {}), f"{path}: [device.NAME]")
    described = {name: _device(f"{path}: [device.{name}", table) for name, table in devices.items()}
    return Rig(
        path,
        meters.port,
        described,
        as_struct(data.get("supply", {}), RigSupply, f"{path}: [supply]"),
        as_struct(data.get("room", {}), RigRoom, f"{path}: [room]"),
        meters.medium,
    )


def _read_toml(path: Path) -> dict[str, Any]:
    again = "'host/measure.py init' writes a new one"
    try:
        if not path.exists():
            raise BadInput(
                f"{path} is not there: describe your rig with 'host/measure.py init'; without hardware, add --simulate"
            )
        if not path.is_file():
            raise BadInput(f"{path} is not a file: {again}")
        if (size := path.stat().st_size) > RIG_BYTES_MAX:
            raise BadInput(f"{path} has {size} bytes, too many for a rig's description: {again}")
        data = read_toml(path, again)
        wrong = [name for name, text in _texts(data) if any(ord(letter) < 32 or ord(letter) == 127 for letter in text)]
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; {again}") from None
    except RecursionError:
        raise BadInput(f"{path} cannot be read: its tables are nested too deep; {again}") from None
    if wrong:
        raise BadInput(f"{path}: {wrong[0] or 'a key'} holds a control character")
    return data


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text, including keys, after the name of its entry."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        yield from ((name, key) for key in value)
        for key, inner in value.items():
            yield from _texts(inner, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, name)


def _device(where: str, table: object) -> RigDevice:
    """One board; `where` lacks its closing bracket."""
    known = as_table(table, f"{where}]")
    media = known.get(MEDIUM, {})
    if not isinstance(media, dict):
        raise BadInput(f'{where}.{MEDIUM}] needs lines like sd = "/mnt/sd/opjoule"')
    state = as_table(known.get("state", {}), f"{where}.state]")
    device = as_struct(
        known,
        RigDevice,
        f"{where}]",
        media={name: _medium(f"{where}.{MEDIUM}]", name, value) for name, value in media.items()},
        state=StateSettings().changed(state, f"{where}.state]"),
    )
    if _WITH_PASSWORD.match(device.connection):
        raise BadInput(f"{where}] connection holds a password, and ssh takes none there: let your key in (ssh-copy-id)")
    try:
        check_sync("none" if device.sync is None else device.sync)
    except BadInput as error:
        raise BadInput(f"{where}] {error}") from None
    return device


def _medium(where: str, name: str, value: object) -> Medium:
    table = {"path": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise BadInput(f'{where} needs lines like {name} = "/mnt/{name}/opjoule"')
    medium = as_struct({"path": "", **table}, Medium, f"{where} {name}:")
    if medium.expendable and not medium.device:
        raise BadInput(f"{where} {name}: expendable = true needs the device that may be overwritten")
    return replace(medium, path=medium.path.rstrip("/") or "/")


def check_sync(carrier: str) -> str:
    """The carrier, if the probe takes it. Raises: BadInput: not none, gpio:NAME, gpio:CHIP:LINE, gpio:sysfs:NUMBER."""
    kind, _, line = carrier.partition(":")
    fits = bool(line)
    if line.startswith("/"):
        fits = line.rpartition(":")[2].isdigit()
    elif line.startswith("sysfs:"):
        fits = line.removeprefix("sysfs:").isdigit()
    if carrier == "none" or (kind == "virtual" and line) or (kind == "gpio" and fits):
        return carrier
    raise BadInput(
        f"{carrier!r} is not a sync line: write gpio:NAME as in gpio:GPIO17, gpio:CHIP:LINE as in "
        "gpio:/dev/gpiochip0:17, gpio:sysfs:NUMBER, or none"
    )


SUDOERS: Final = "/etc/sudoers.d/opjoule"
_USER: Final = re.compile(r"[a-z_][a-z0-9_.-]*\$?")
_WORD: Final = re.compile(r"[A-Za-z0-9_./:@,+=% -]+")


def helper_text(device: RigDevice, user: str) -> str:
    """The program for one board and user. Raises: BadInput: a medium's path or device that no order can contain."""
    lists = {
        "version": helper_version(),
        "user": user,
        "cpufreq": device.cpufreq,
        "media": "\n".join(_line(name, medium) for name, medium in device.media.items()),
        "units": "\n".join(STOPPED_UNITS),
    }
    steps, state, checks = map(script, HELPER_PARTS)
    return "\n".join(
        [
            "#!/bin/sh",
            "# opjoule-root: all that OpJoule does as root on this board. Written by host/measure.py sudoers.",
            *(f"{name}={shlex.quote(value)}" for name, value in lists.items()),
            steps,
            f"state_of() (\n{state})",
            checks,
        ]
    )


def install_script(device: RigDevice, user: str) -> str:
    """Shell script, run once as root on the board: installs opjoule-root and its sudoers file.

    Raises: BadInput: not a valid user name; a medium that cannot be listed.
    """
    if not _USER.fullmatch(user):
        raise BadInput(f"user '{user}' cannot stand in a sudoers file: name one of lower-case letters and digits")
    text = helper_text(device, user)
    rule = f"{user} ALL=(root) NOPASSWD: sha256:{hashlib.sha256(text.encode()).hexdigest()} {HELPER}"
    plan = "\n".join(f"#   {line}" for line in root_plan(device, user))
    return f"""#!/bin/sh
# Run this once on the board, as root. User {user} may then run one program as root, and it does this alone:
{plan}
# To take it back: rm {HELPER} {SUDOERS}
set -eu
umask 022
[ "$(id -u)" = 0 ] || {{ echo 'run this as root' >&2; exit 1; }}
cat > {HELPER}.new <<'END_OF_OPJOULE_ROOT'
{text}END_OF_OPJOULE_ROOT
chown root:root {HELPER}.new
chmod 755 {HELPER}.new
cat > {SUDOERS}.new <<'END_OF_SUDOERS'
Defaults!{HELPER} env_reset, !setenv
{rule}
END_OF_SUDOERS
chmod 440 {SUDOERS}.new
visudo -c -q -f {SUDOERS}.new
mv {HELPER}.new {HELPER}
mv {SUDOERS}.new {SUDOERS}
echo 'opjoule-root is in place'
"""


def root_plan(device: RigDevice, user: str) -> list[str]:
    """Actions allowed as root on the board, one line each."""
    lines = [
        "read settings: CPU, radios, HDMI, LEDs, fan, swap, active units, block devices and mounts",
        f"write CPU governor and frequencies below {device.cpufreq}, and switch processors on and off",
        "switch Wi-Fi and Bluetooth (rfkill), HDMI and LEDs on and off; fix the fan's step",
        "switch off swap that is on, and on again",
        f"systemctl stop or start: {' '.join(STOPPED_UNITS)}",
        "take memory away by a ramfs on /run/opjoule-memory; drop the page cache",
        f"give /dev/gpiochip* to {user}, and back",
        "keep the journal of these changes in /var/lib/opjoule, and undo it",
    ]
    for medium in device.media.values():
        if medium.device:
            lines.append(f"make the folder {medium.path}, mount {medium.device} there, and undo both")
        if medium.expendable:
            lines.append(
                f"make, check or change the file system on {medium.device}, everything on it lost; fill and trim it; "
                f"give {medium.path} to {user}"
            )
    return lines


def _line(name: str, medium: Medium) -> str:
    for word in (medium.device, medium.path):
        if word and (not _WORD.fullmatch(word) or ".." in word):
            raise BadInput(f"medium {name}: {word!r}: opjoule-root takes letters, digits and _./:@,+=%- alone")
    return f"{medium.device}|{medium.path}|{'expendable' if medium.expendable else 'kept'}"
