"""The port of a meter on a serial line, with its errors in plain words."""

import errno
from pathlib import Path

import serial
from serial.tools import list_ports

from opjoule.base.errors import MeterFault
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
