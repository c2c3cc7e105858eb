"""SIMULATED: a pyusb backend that replaces libusb and has one Monsoon on its bus; for monsoon_reset.py."""

# ruff: noqa: D102  # the methods are pyusb's
from __future__ import annotations

import array
import struct
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import usb.backend
import usb.core

MEMORY = {0x42: 23171, 0x45: 2, 0xC0: 32, 0xC1: 18, 0xC4: 0}
"""Opcode -> value: serial number, HVPM, firmware, protocol, start status (the library's Operations)."""
NO_DEVICE = 19


class Backend(usb.backend.IBackend):
    """One Monsoon on one bus."""

    def __init__(self, bus: Path, reset_s: float) -> None:
        """`bus` is a file with the time at which the device is back [s]; a reset removes it for `reset_s`."""
        self._bus, self._reset_s = bus, reset_s

    def _there(self) -> bool:
        return time.time() >= float(self._bus.read_text())

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

    def get_endpoint_descriptor(self, dev: str, ep: int, intf: int, alt: int, config: int) -> SimpleNamespace:
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
        self._bus.write_text(str(time.time() + self._reset_s))

    def ctrl_transfer(
        self, handle: str, kind: int, request: int, value: int, index: int, data: Any, timeout: int
    ) -> int:
        self._check()
        if kind & 0x80 and request == 6:  # a string descriptor: the languages, or the serial number
            text = struct.pack("<H", 0x0409) if value & 0xFF == 0 else str(MEMORY[0x42]).encode("utf-16-le")
            return self._answer(data, bytes([len(text) + 2, 3]) + text)
        if kind & 0x80:
            return self._answer(data, struct.pack("<I", MEMORY[index & 0xFF]))
        return len(data)

    def _check(self) -> None:
        if not self._there():
            raise usb.core.USBError("No such device (it may have been disconnected)", None, NO_DEVICE)

    @staticmethod
    def _answer(data: Any, answer: bytes) -> int:
        given = array.array("B", answer[: len(data)])
        data[: len(given)] = given
        return len(given)
