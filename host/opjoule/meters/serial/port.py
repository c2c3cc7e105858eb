"""The port of a meter on a serial line, with its errors and its obstacles on this computer in plain words.

Obstacles are other programs, latency, names and permissions. The checks for them only read /sys, /proc, /dev and udev's
own files; no device is opened or changed.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import serial
from serial.tools import list_ports

from opjoule.base.errors import MeterFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.clocks.host_clock import HostClock
from opjoule.meters.interface import MeterGone
from opjoule.meters.messages import BAUD

READ_BYTES = 1 << 16


class SerialPort:
    """A serial port, opened exclusively for this process."""

    def __init__(self, path: str, clock: HostClock, baud: int = BAUD) -> None:
        self.path, self._clock = path, clock
        self._port = _open(path, baud)

    def set_baud(self, baud: int) -> None:
        """Goes on at another speed; bytes that arrived before are dropped. Raises: MeterGone."""
        try:
            self._port.baudrate = baud
            self._port.reset_input_buffer()
        except (OSError, TypeError, ValueError) as fault:
            raise self._gone(fault) from None

    def read(self, timeout_s: float, gather_s: float = 0.0) -> bytes:
        """Received bytes; waits up to `timeout_s` for the first one, then `gather_s` for more. Raises: MeterGone."""
        try:
            if not self._clock.wait_readable(self._port, timeout_s):
                return b""
            if gather_s:
                self._clock.sleep(gather_s)
            return self._arrived()
        except (OSError, TypeError, ValueError) as fault:  # SerialException is an OSError; the others: closed
            raise self._gone(fault) from None

    def _arrived(self) -> bytes:
        """Bytes that can be read now; may be empty, because select() can wake for bytes that a driver drops.

        Raises: OSError: the port is gone. Linux answers ioctl() on a port that was hung up with EIO.
        """
        try:
            return bytes(self._port.read(READ_BYTES))
        except serial.SerialException as fault:
            if not _read_nothing(fault):
                raise
            try:
                _ = self._port.in_waiting
            except OSError:
                raise fault from None
            return b""

    def write(self, data: bytes) -> None:
        """Sends all of `data`. Raises: MeterGone."""
        try:
            self._port.write(data)
        except (OSError, TypeError) as fault:
            raise self._gone(fault) from None

    def close(self) -> None:
        """Closes the port. Never raises: a pulled cable must not hide an earlier error."""
        try:
            self._port.close()
        except OSError:
            return

    def _gone(self, fault: Exception) -> MeterGone:
        reason = _first_line(fault)
        return MeterGone(f"meter on {self.path}: the port closed in mid-run ({reason}): cable pulled or supply lost")


def ports_present() -> list[str]:
    """Serial ports of this computer that have hardware behind them, with the hardware's description."""
    ports = [port for port in list_ports.comports() if port.hwid != "n/a"]
    return [f"{port.device} ({port.description})" for port in sorted(ports, key=lambda port: port.device)]


def is_pseudo_terminal(path: str) -> bool:
    """True if a program, not a meter, is at the other end: the path leads to /dev/pts."""
    return Path(path).resolve().is_relative_to("/dev/pts")


def _open(path: str, baud: int) -> serial.Serial:
    if not Path(path).exists():
        present = ports_present()
        listed = "ports present: " + ", ".join(present) if present else "no serial port is present"
        raise MeterFault(f"meter port {path}: no such port; {listed}: plug the meter in, or name its port")
    try:
        return serial.Serial(path, baud, timeout=0, write_timeout=2.0, exclusive=True)
    except OSError as fault:
        raise _explain(path, fault) from None
    except ValueError as fault:
        raise MeterFault(f"meter port {path}: {_first_line(fault)}") from None


def _explain(path: str, fault: OSError) -> MeterFault:
    number = fault.errno
    if number in (errno.EACCES, errno.EPERM):
        return MeterFault(
            f"meter port {path}: permission denied: run 'sudo usermod -aG dialout $USER' and log in again, "
            "or install docs/how-to/60-opjoule-meter.rules in /etc/udev/rules.d"
        )
    if number in (errno.EAGAIN, errno.EBUSY) or "exclusively lock" in str(fault):
        return MeterFault(f"meter port {path}: busy, another program has it open: 'fuser {path}' names it")
    if number in (errno.ENOTTY, errno.EINVAL) or "configure port" in str(fault):
        return MeterFault(f"meter port {path}: is not a serial port")
    return MeterFault(f"meter port {path}: cannot be opened: {_first_line(fault)}")


def _read_nothing(fault: Exception) -> bool:
    """True for pyserial's error when select() reported data but the read returned none."""
    return "returned no data" in str(fault)


def _first_line(fault: Exception) -> str:
    if _read_nothing(fault):
        return "end of file"
    return str(fault).splitlines()[0] if str(fault) else type(fault).__name__


ROOT = Path("/")
"""Root of the file system that is checked."""
RULES: Final = "docs/how-to/60-opjoule-meter.rules"
INSTALL: Final = (
    f"sudo cp {RULES} /etc/udev/rules.d/ && sudo udevadm control --reload && sudo udevadm trigger, "
    "then plug it in again"
)
CONVERTERS: Final = frozenset({"2341", "2a03", "239a", "1a86", "10c4", "0403", "2e8a", "0483", "1915"})
"""USB vendor ids of the boards, converters and serial meters; the same as in the udev rules."""
_UNPROGRAMMED: Final = frozenset({"", "0001"})
"""Serial numbers that many devices share: a CH340 has none, a CP2102 has 0001 until it is programmed (data sheet
of CP2102/9, default configuration). All have one name in /dev/serial/by-id, which leads to the last one that came
(systemd issue 30574)."""
_RULE_FOLDERS: Final = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")
"""Folders of udev's rules; the first of several files with the same name counts (udev(7))."""
_LATENCY_LEAST_MS: Final = 1


def serial_obstacles(port: str) -> list[Notice]:
    """All obstacles to the meter on a port like /dev/ttyUSB0, in the order in which they would be met."""
    root = ROOT
    node = (root / port.lstrip("/")).resolve()
    device = _usb_device(root, node.name)
    obstacles = [_brltty(root, device)]
    if not node.exists():
        obstacles.append(_wsl(root))
    else:
        obstacles += [_rights(port, node), _name(port)]
    if device:
        obstacles += [_modem_manager(root, node.name, device), _latency(root, node.name)]
    return [obstacle for obstacle in obstacles if obstacle]


def lasting_name(port: str) -> str:
    """A name that stays: that of the device's serial number, else of its USB socket; the port itself if it has none."""
    node = (ROOT / port.lstrip("/")).resolve()
    if not node.name.startswith(("ttyUSB", "ttyACM")):
        return port
    device = _usb_device(ROOT, node.name)
    own = device is not None and _text(device / "serial") not in _UNPROGRAMMED
    lasting = ("by-id", "by-path") if own else ("by-path",)
    if Path(port).parent in [Path("/dev/serial") / folder for folder in lasting]:
        return port
    links = sorted((ROOT / "dev/serial" / lasting[0]).glob("*"))
    return next((f"/dev/serial/{lasting[0]}/{link.name}" for link in links if link.resolve() == node), port)


def _usb_device(root: Path, tty: str) -> Path | None:
    """The USB device's folder in /sys; None if the port is absent or not on USB."""
    place = root / "sys/class/tty" / tty / "device"
    if not place.exists():
        return None
    return next((folder for folder in place.resolve().parents if (folder / "idVendor").exists()), None)


def _wsl(root: Path) -> Notice | None:
    """The obstacle that this is WSL, where a USB device is Windows' until it is attached."""
    if "microsoft" not in _text(root / "proc/sys/kernel/osrelease").lower():
        return None
    return Notice(
        NoticeKind.MEND,
        "this is WSL, which has only the USB devices that Windows gives it",
        "in Windows, with usbipd-win installed: usbipd list; usbipd bind --busid BUSID (as administrator); usbipd "
        "attach --wsl --busid BUSID (docs/how-to/other-systems.md)",
    )


def _brltty(root: Path, device: Path | None) -> Notice | None:
    """The obstacle that brltty takes the converter for a Braille display: the port vanishes a second after it appeared.

    If the port is absent, every converter on the bus is checked, because brltty may have taken it.
    """
    candidates = [device] if device else []
    if not device:
        on_bus = root.glob("sys/bus/usb/devices/*")
        candidates = [folder for folder in on_bus if _text(folder / "idVendor") in CONVERTERS]
    claims = list(_brltty_claims(root))
    for candidate in candidates:
        vendor, product = _text(candidate / "idVendor"), _text(candidate / "idProduct")
        for rules, line in claims:
            if vendor and vendor in line and product in line:
                return Notice(
                    NoticeKind.MEND,
                    f"brltty mistakes {vendor}:{product} for a Braille display ({rules}), and its port vanishes",
                    f"sudo apt remove brltty; if somebody reads Braille here: sudo ln -s /dev/null "
                    f"/etc/udev/rules.d/{rules}, then plug it in again",
                )
    return None


def _brltty_claims(root: Path) -> Iterator[tuple[str, str]]:
    """(file, line in lower case) of brltty's rules that are in force."""
    seen: set[str] = set()
    for folder in _RULE_FOLDERS:
        for path in sorted((root / folder).glob("*brltty*.rules")):
            if path.name in seen:
                continue
            seen.add(path.name)
            for line in _text(path).lower().splitlines():
                if not line.lstrip().startswith("#"):
                    yield path.name, line


def _rights(port: str, node: Path) -> Notice | None:
    """Why this user may not open the port, and the remedy; None if he may."""
    import grp  # noqa: PLC0415  # Windows has neither, and imports traces of these meters
    import pwd  # noqa: PLC0415

    if os.access(node, os.R_OK | os.W_OK, effective_ids=True):
        return None
    user, name, members = str(os.geteuid()), str(node.stat().st_gid), list[str]()
    with contextlib.suppress(KeyError):
        user = pwd.getpwuid(os.geteuid()).pw_name
    with contextlib.suppress(KeyError):
        name, _, _, members = grp.getgrgid(node.stat().st_gid)
    if user in members:
        return Notice(
            NoticeKind.MEND,
            f"{user} is in the group {name}, but not in this session",
            "log out and in again, or reboot",
        )
    join = [f"sudo usermod -aG {name} {user} and log in again"] if name != "root" else []
    return Notice(
        NoticeKind.MEND, f"{port} belongs to the group {name}, and {user} is not in it", ", or ".join([*join, INSTALL])
    )


def _name(port: str) -> Notice | None:
    """The obstacle that the port's name may be another device's later although the device has a permanent one."""
    if (lasting := lasting_name(port)) == port:
        return None
    if port.startswith("/dev/serial/by-id/"):
        line = f"{port} may be another device later: every one without a serial number of its own has this name"
    else:
        line = f"{port} may be another device after the next boot"
    stay = " and leave the meter in its USB socket" if "/by-path/" in lasting else ""
    return Notice(NoticeKind.MEND, line, f'write port = "serial:{lasting}" into rig.toml{stay}')


def _modem_manager(root: Path, tty: str, device: Path) -> Notice | None:
    """The obstacle that ModemManager may send AT commands to a new port, as udev's entry does not forbid it."""
    running = any(_text(process_name) == "ModemManager" for process_name in root.glob("proc/[0-9]*/comm"))
    if not running:
        return None
    for place in (root / "sys/class/tty" / tty, device):
        entry = _text(root / "run/udev/data" / f"c{_text(place / 'dev')}").splitlines()
        if "E:ID_MM_DEVICE_IGNORE=1" in entry or "E:ID_MM_PORT_IGNORE=1" in entry:
            return None
    return Notice(
        NoticeKind.MEND, "ModemManager runs and may disturb the meter (ID_MM_DEVICE_IGNORE is not set)", INSTALL
    )


def _latency(root: Path, tty: str) -> Notice | None:
    """The obstacle that an FTDI converter delays bytes, which blurs each clock exchange by the same time."""
    text = _text(root / "sys/bus/usb-serial/devices" / tty / "latency_timer")
    if not text.isdigit() or int(text) <= _LATENCY_LEAST_MS:
        return None
    return Notice(
        NoticeKind.MEND,
        f"its FTDI converter delays bytes by {text} ms, and every clock exchange with them",
        f"echo {_LATENCY_LEAST_MS} | sudo tee /sys/bus/usb-serial/devices/{tty}/latency_timer; to keep it: {INSTALL}",
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
