"""A meter on USB through pyusb and libusb. Every failure is reported in one line with its remedy."""

import contextlib
import errno
from collections.abc import Mapping
from typing import Any, Final

from opjoule.base.errors import BadInput, MeterFault
from opjoule.meters.interface import MeterGone

LIBRARY: Final = "pyusb is not installed: .venv/bin/pip install -r host/requirements/usb.in"
LIBUSB: Final = "libusb is missing: sudo apt-get install libusb-1.0-0"
PERMISSION: Final = (
    "you may not open it: sudo cp docs/how-to/60-{}.rules /etc/udev/rules.d/ && sudo udevadm control --reload, then "
    "plug it in again"
)
"""Remedy; {} is the name of the meter's udev rules."""
SEVERAL: Final = "several devices"
HELD: Final = "another program holds it: close that program (lsusb -t names the driver), then start again"
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM})
HID_CLASS: Final = 0x03
VENDOR_CLASS: Final = 0xFF


Models = Mapping[tuple[int, int], str]
"""USB vendor and product id -> name of the model."""


class UsbLink:
    """One opened interface of one device, for sending and receiving packets. Use it from one thread at a time."""

    def __init__(self, kind: str, device: Any, interface: Any, usb: Any) -> None:
        """`interface`: pyusb's, with one endpoint each way, not claimed yet. Raises: MeterFault: no permission."""
        self._kind, self._device, self._interface, self._usb = kind, device, interface.bInterfaceNumber, usb
        self.serial_number = self._serial_number()
        self.place = f"USB bus {device.bus} device {device.address}"
        self._out, self._in = (
            next(end for end in interface if bool(end.bEndpointAddress & 0x80) is inward) for inward in (False, True)
        )
        self._had_driver = False

    def write(self, data: bytes) -> None:
        """Sends one packet. Raises: MeterGone: the device was unplugged, or it no longer accepts data."""
        try:
            self._out.write(data, timeout=1000)
        except self._usb.core.USBError as error:
            raise self._gone(error) from None

    def read(self, timeout_s: float) -> bytes:
        """The next packet; empty if none came in time. Raises: MeterGone: the device was unplugged."""
        try:
            return bytes(self._in.read(64, timeout=max(round(timeout_s * 1000), 1)))
        except self._usb.core.USBError as error:
            if error.errno == errno.ETIMEDOUT:
                return b""
            raise self._gone(error) from None

    def claim(self) -> None:
        """Takes the interface over from the kernel's driver. Raises: MeterFault: another program holds it."""
        try:
            if self._device.is_kernel_driver_active(self._interface):
                self._device.detach_kernel_driver(self._interface)
                self._had_driver = True
            self._usb.util.claim_interface(self._device, self._interface)
        except (self._usb.core.USBError, NotImplementedError) as error:
            raise refusal(self._kind, error) from None

    def close(self) -> None:
        """Returns the interface to the kernel's driver; never raises."""
        failures = (self._usb.core.USBError, NotImplementedError)
        with contextlib.suppress(*failures):
            self._usb.util.release_interface(self._device, self._interface)
        if self._had_driver:
            with contextlib.suppress(*failures):
                self._device.attach_kernel_driver(self._interface)
        with contextlib.suppress(*failures):
            self._usb.util.dispose_resources(self._device)

    def _serial_number(self) -> str:
        """Serial number of the device; empty if it has none. Raises: MeterFault: this user may not open it."""
        try:
            return str(self._device.serial_number or "").strip("\0 ")
        except (self._usb.core.USBError, NotImplementedError) as error:
            raise refusal(self._kind, error) from None
        except ValueError:  # pyusb: no language; pyusb says the same of a device that may not be opened
            return ""

    def _gone(self, error: Any) -> MeterGone:
        return MeterGone(f"{self._kind}: {self.place} is gone ({_words(error)}): cable pulled, or supply lost")


def refusal(kind: str, error: Any) -> MeterFault:
    """The reason why a device does not open, with the remedy."""
    number = getattr(error, "errno", None)
    if number in _FORBIDDEN:
        return MeterFault(f"{kind}: {PERMISSION.format('usb-meters')}")
    if number == errno.EBUSY:
        return MeterFault(f"{kind}: {HELD}")
    return MeterFault(f"{kind}: it does not open ({_words(error)}): plug it in again")


def open_usb(kind: str, models: Models, wanted: str, interface_class: int) -> tuple[str, UsbLink]:
    """Model and link of the one device of these models, or of the one with the wanted serial number; it is claimed.

    Raises:
        MeterFault: no device, a missing library, no permission, or another program holds it.
        BadInput: several devices, and none was named.
    """
    usb = _library(kind)
    try:
        known = usb.core.find(find_all=True, custom_match=lambda d: (d.idVendor, d.idProduct) in models)
        devices = list(known)
    except usb.core.NoBackendError:
        raise MeterFault(f"{kind}: {LIBUSB}") from None
    links = [UsbLink(kind, device, _interface(usb, kind, device, interface_class), usb) for device in devices]
    pairs = zip(devices, links, strict=True)
    chosen = [(device, link) for device, link in pairs if wanted in {"", link.serial_number}]
    if len(chosen) != 1:
        fitting = [link.serial_number for _, link in chosen]
        raise _not_one(kind, models, wanted, [link.serial_number for link in links], fitting)
    device, link = chosen[0]
    link.claim()
    return models[device.idVendor, device.idProduct], link


def _library(kind: str) -> Any:
    try:
        import usb.core  # noqa: PLC0415
        import usb.util  # noqa: PLC0415
    except ImportError:
        raise MeterFault(f"{kind}: {LIBRARY}") from None
    return usb


def _interface(usb: Any, kind: str, device: Any, interface_class: int) -> Any:
    """The interface of this class, else the first. Raises: MeterFault: no permission, or the device is gone again."""
    try:
        interfaces = list(device.get_active_configuration())
    except (usb.core.USBError, NotImplementedError) as error:
        raise refusal(kind, error) from None
    fitting = (interface for interface in interfaces if interface.bInterfaceClass == interface_class)
    return next(fitting, interfaces[0])


def _not_one(kind: str, models: Models, wanted: str, there: list[str], fitting: list[str]) -> MeterFault | BadInput:
    if len(fitting) > 1:
        return BadInput(f"{kind}: {several(kind, fitting)}")
    if there:
        return MeterFault(f"{kind}: no device with serial number {wanted} (found: {_listed(there)})")
    names = ", ".join(f"{name} {vendor:04x}:{product:04x}" for (vendor, product), name in models.items())
    return MeterFault(f"{kind}: none is plugged in ({names}): check the cable, which must carry data, and its port")


def several(kind: str, serial_numbers: list[str]) -> str:
    """What to do about several devices that fit the meter's name, in words."""
    found = f"{SEVERAL} ({_listed(serial_numbers)})"
    unique = [number for number in serial_numbers if number and serial_numbers.count(number) == 1]
    if not unique:
        return f"{found} that no serial number tells apart: leave only one of them plugged in"
    return f"{found}; name one, for example {kind}:{unique[0]}"


def _listed(serial_numbers: list[str]) -> str:
    return ", ".join(number or "one without a serial number" for number in serial_numbers)


def _words(error: Any) -> str:
    return str(getattr(error, "strerror", None) or error)
