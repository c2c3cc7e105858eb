"""A Monsoon that resets when it is closed is waited for: the real PyPI library and pyusb, a device in software below.

    .venv/bin/pip install -r host/requirements/monsoon.in
    .venv/bin/python host/validation/monsoon_reset.py

SIMULATED: the stand-in is a backend of pyusb, in place of libusb. It answers the library's control transfers, is off
the bus for so many seconds after a reset (the library's closeDevice makes one), and is there again as a new device.
Three cases: it is back after 5 s, it never comes back, and there is none from the start. Takes about 30 s.
"""

from __future__ import annotations

import array
import os
import struct
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from opjoule.errors import MeterFault  # noqa: E402
from opjoule.meters.monsoon import MonsoonMeter, MonsoonSettings  # noqa: E402
from opjoule.meters.monsoon.meter import RESET_LIMIT_S, Patience  # noqa: E402
from opjoule.meters.monsoon.reader import MonsoonProtocol, ProtocolSource  # noqa: E402

MEMORY = {0x42: 23171, 0x45: 2, 0xC0: 32, 0xC1: 18, 0xC4: 0}
"""Opcode -> value: serial number, HVPM, firmware, protocol, start status (the library's Operations)."""
RESET_S = 5.0
NO_DEVICE = 19


def protocol(bus: str, reset_s: float) -> MonsoonProtocol:
    """The library's own connection, its pyusb on the stand-in; `bus` is a file that says when the device is back."""
    import usb.backend.libusb1  # noqa: PLC0415
    import usb.core  # noqa: PLC0415
    from opjoule.meters.monsoon.library import usb_protocol  # noqa: PLC0415

    made = _backend(Path(bus), reset_s, usb.backend.IBackend, usb.core.USBError)
    usb.backend.libusb1.get_backend = lambda *_, **__: made
    return usb_protocol()


def _backend(bus: Path, reset_s: float, base: type[Any], usb_error: type[Exception]) -> Any:
    class Backend(base):  # type: ignore[misc]
        """One Monsoon on one bus."""

        def _there(self) -> bool:
            return time.time() >= float(bus.read_text())

        def enumerate_devices(self) -> list[str]:
            return ["monsoon"] if self._there() else []

        def get_device_descriptor(self, dev: str) -> SimpleNamespace:
            return SimpleNamespace(
                bLength=18, bDescriptorType=1, bcdUSB=0x200, bDeviceClass=0, bDeviceSubClass=0, bDeviceProtocol=0,
                bMaxPacketSize0=64, idVendor=0x2AB9, idProduct=1, bcdDevice=1, iManufacturer=0, iProduct=0,
                iSerialNumber=3, bNumConfigurations=1, bus=1, address=int(time.time()) % 100, port_number=1,
                port_numbers=(1,), speed=2,
            )  # fmt: skip

        def get_configuration_descriptor(self, dev: str, config: int) -> SimpleNamespace:
            return SimpleNamespace(
                bLength=9, bDescriptorType=2, wTotalLength=32, bNumInterfaces=1, bConfigurationValue=1,
                iConfiguration=0, bmAttributes=0x80, bMaxPower=50, extra_descriptors=[],
            )  # fmt: skip

        def get_interface_descriptor(self, dev: str, intf: int, alt: int, config: int) -> SimpleNamespace:
            if intf or alt:
                raise IndexError
            return SimpleNamespace(
                bLength=9, bDescriptorType=4, bInterfaceNumber=0, bAlternateSetting=0, bNumEndpoints=2,
                bInterfaceClass=255, bInterfaceSubClass=0, bInterfaceProtocol=0, iInterface=0, extra_descriptors=[],
            )  # fmt: skip

        def get_endpoint_descriptor(
            self, dev: str, ep: int, intf: int, alt: int, config: int
        ) -> SimpleNamespace:
            return SimpleNamespace(
                bLength=7, bDescriptorType=5, bEndpointAddress=(0x81, 0x01)[ep], bmAttributes=2, wMaxPacketSize=64,
                bInterval=0, bRefresh=0, bSynchAddress=0, extra_descriptors=[],
            )  # fmt: skip

        def open_device(self, dev: str) -> str:
            self._check()
            return dev

        def close_device(self, dev_handle: str) -> None: ...
        def set_configuration(self, dev_handle: str, config_value: int) -> None: ...
        def claim_interface(self, dev_handle: str, intf: int) -> None: ...
        def release_interface(self, dev_handle: str, intf: int) -> None: ...
        def detach_kernel_driver(self, dev_handle: str, intf: int) -> None: ...
        def get_configuration(self, dev_handle: str) -> int:
            return 1

        def reset_device(self, dev_handle: str) -> None:
            bus.write_text(str(time.time() + reset_s))

        def ctrl_transfer(
            self, handle: str, kind: int, request: int, value: int, index: int, data: Any, timeout: int
        ) -> int:
            self._check()
            if kind & 0x80 and request == 6:  # a descriptor: of texts, the languages and the serial number
                text = (
                    struct.pack("<H", 0x0409) if value & 0xFF == 0 else str(MEMORY[0x42]).encode("utf-16-le")
                )
                return self._answer(data, bytes([len(text) + 2, 3]) + text)
            if kind & 0x80:
                return self._answer(data, struct.pack("<I", MEMORY[index & 0xFF]))
            return len(data)

        def _check(self) -> None:
            if not self._there():
                raise usb_error("No such device (it may have been disconnected)", None, NO_DEVICE)

        @staticmethod
        def _answer(data: Any, answer: bytes) -> int:
            given = array.array("B", answer[: len(data)])
            data[: len(given)] = given
            return len(given)

    return Backend()


def opened(bus: Path, reset_s: float) -> tuple[float, list[str], str]:
    """(seconds, what was said, serial number or fault) of one opening."""
    said: list[str] = []
    source = ProtocolSource("monsoon_reset", "protocol", {"bus": str(bus), "reset_s": reset_s})
    meter, began_s = MonsoonMeter(MonsoonSettings(), source, Patience(say=said.append)), time.monotonic()
    try:
        outcome = f"serial number {meter.open().serial_number}"
    except MeterFault as fault:
        outcome = str(fault)
    took_s = time.monotonic() - began_s
    meter.close()
    return took_s, said, outcome


def main() -> int:
    """0 if the device is waited for, and only so long."""
    well = True
    with tempfile.TemporaryDirectory(prefix=f"opjoule-monsoon-{os.getpid()}-") as folder:
        for name, reset_s, there_before in (
            (f"back after {RESET_S:g} s", RESET_S, True),
            ("never back", 1e9, True),
            ("none from the start", 1e9, False),
        ):
            bus = Path(folder) / "bus"
            bus.write_text("0" if there_before else "1e18")
            if there_before:
                first = opened(bus, reset_s)  # its close() resets the device
                well &= first[2] == "serial number 23171" and not first[1]
            took_s, said, outcome = opened(bus, reset_s)
            back = reset_s == RESET_S
            well &= len(said) == 1 and (outcome == "serial number 23171" if back else "plugged in" in outcome)
            well &= took_s >= (1.0 if back else RESET_LIMIT_S)
            print(f"{name:20} {took_s:5.1f} s  {outcome}  (said: {'; '.join(said)})")
    print("SIMULATED: as it should be" if well else "SIMULATED: NOT as it should be")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
