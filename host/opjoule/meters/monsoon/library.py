"""The connection of PyPI's Monsoon library: loaded only here, and only in the reader's process."""

from typing import Any, Final

from opjoule.errors import MeterFault
from opjoule.meters.monsoon.reader import LIBRARY, LIBUSB, PERMISSION, MonsoonProtocol

VENDOR: Final = 0x2AB9
PRODUCT: Final = 0x0001


def usb_protocol() -> MonsoonProtocol:
    """A connection over USB.

    Raises: MeterFault: the library is missing, no Monsoon is plugged in, or this user may not open it.
    """
    try:
        import usb.core  # noqa: PLC0415
        from Monsoon import pmapi  # noqa: PLC0415
    except ImportError:
        raise MeterFault(LIBRARY) from None
    try:
        found = list(usb.core.find(find_all=True, idVendor=VENDOR, idProduct=PRODUCT))
    except usb.core.NoBackendError:
        raise MeterFault(LIBUSB) from None
    if not found:
        raise MeterFault("none is plugged in (USB 2ab9:0001): check its cable and its switch")
    _check_permission(found, usb.core.USBError)
    protocol: MonsoonProtocol = pmapi.USB_protocol()
    return protocol


def _check_permission(found: list[Any], usb_error: type[Exception]) -> None:
    """Reading the serial number needs the right to open the device; the library takes a refusal for absence."""
    try:
        for device in found:
            _ = device.serial_number
    except (usb_error, ValueError):
        raise MeterFault(PERMISSION) from None
