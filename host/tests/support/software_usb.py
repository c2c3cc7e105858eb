"""USB testers in software below pyusb: a backend in place of libusb, with devices that speak their protocols."""

import array
import errno
import struct
import time
from types import SimpleNamespace

import usb.backend
import usb.core

BULK, INTERRUPT = 2, 3
VENDOR, HID, STORAGE = 0xFF, 0x03, 0x08
LANGUAGE = struct.pack("<H", 0x0409)
TEXTS = {1: "Maker", 2: "Tester"}


class Supply:
    """The true current [A] and voltage [V], over the time since the first reading [s]."""

    def __init__(self, amperes=0.6, volts=5.1):
        self.amperes, self.volts = amperes, volts
        self.began_s = None

    def now(self):
        at_s = time.monotonic()
        self.began_s = at_s if self.began_s is None else self.began_s
        value = self.amperes(at_s - self.began_s) if callable(self.amperes) else self.amperes
        return value, self.volts


class SoftwareDevice:
    """One device: its identity, and who holds it. A subclass implements its protocol in `take` and `give`."""

    ids = (0, 0)
    interfaces = ((0, VENDOR, BULK, 0x01, 0x81),)
    """number, class, transfer type, endpoint out, endpoint in"""

    def __init__(self, *, serial="0001A0000000", forbidden=False, held=False, driver=True, dies_after=None):
        self.serial, self.forbidden, self.held = serial, forbidden, held
        self.driver = {number: driver for number, *_ in self.interfaces}
        """interface -> whether the kernel's driver is bound to it"""
        self.dies_after = dies_after
        """number of transfers after which its cable is pulled"""
        self.claimed = set()
        self.transfers = 0

    def take(self, data):
        """Takes bytes from the host."""

    def give(self, timeout_s):
        """The next packet, or nothing after the timeout."""

    def transfer(self):
        self.transfers += 1
        if self.dies_after is not None and self.transfers > self.dies_after:
            raise usb.core.USBError("No such device (it may have been disconnected)", None, errno.ENODEV)


class SoftwareBus(usb.backend.IBackend):
    """A bus with these devices, as pyusb sees it."""

    def __init__(self, *devices):
        self.devices = list(devices)

    def enumerate_devices(self):
        return self.devices

    def get_device_descriptor(self, dev):
        return SimpleNamespace(
            bLength=18, bDescriptorType=1, bcdUSB=0x200, bDeviceClass=0, bDeviceSubClass=0, bDeviceProtocol=0,
            bMaxPacketSize0=64, idVendor=dev.ids[0], idProduct=dev.ids[1], bcdDevice=1, iManufacturer=1, iProduct=2,
            iSerialNumber=3 if dev.serial else 0, bNumConfigurations=1, bus=1,
            address=self.devices.index(dev) + 1, port_number=1, port_numbers=(1,), speed=2,
        )  # fmt: skip

    def get_configuration_descriptor(self, dev, config):
        return SimpleNamespace(
            bLength=9, bDescriptorType=2, wTotalLength=32, bNumInterfaces=len(dev.interfaces),
            bConfigurationValue=1, iConfiguration=0, bmAttributes=0x80, bMaxPower=50, extra_descriptors=[],
        )  # fmt: skip

    def get_interface_descriptor(self, dev, intf, alt, config):
        if alt:
            raise IndexError
        number, kind, *_ = dev.interfaces[intf]
        return SimpleNamespace(
            bLength=9, bDescriptorType=4, bInterfaceNumber=number, bAlternateSetting=0, bNumEndpoints=2,
            bInterfaceClass=kind, bInterfaceSubClass=0, bInterfaceProtocol=0, iInterface=0, extra_descriptors=[],
        )  # fmt: skip

    def get_endpoint_descriptor(self, dev, ep, intf, alt, config):
        _, _, transfer, *ends = dev.interfaces[intf]
        return SimpleNamespace(
            bLength=7, bDescriptorType=5, bEndpointAddress=ends[ep], bmAttributes=transfer, wMaxPacketSize=64,
            bInterval=1, bRefresh=0, bSynchAddress=0, extra_descriptors=[],
        )  # fmt: skip

    def open_device(self, dev):
        if dev.forbidden:
            raise usb.core.USBError("Access denied (insufficient permissions)", None, errno.EACCES)
        return dev

    def close_device(self, handle): ...
    def get_configuration(self, handle):
        return 1

    def claim_interface(self, handle, intf):
        if handle.held:
            raise usb.core.USBError("Resource busy", None, errno.EBUSY)
        assert not handle.driver[intf], "claimed from under the kernel's driver"
        handle.claimed.add(intf)

    def release_interface(self, handle, intf):
        handle.claimed.discard(intf)

    def is_kernel_driver_active(self, handle, intf):
        return handle.driver[intf]

    def detach_kernel_driver(self, handle, intf):
        handle.driver[intf] = False

    def attach_kernel_driver(self, handle, intf):
        assert intf not in handle.claimed
        handle.driver[intf] = True

    def ctrl_transfer(self, handle, kind, request, value, index, data, timeout):
        number = value & 0xFF
        text = LANGUAGE if number == 0 else {**TEXTS, 3: handle.serial}[number].encode("utf-16-le")
        return _fill(data, bytes([len(text) + 2, 3]) + text)

    def bulk_write(self, handle, ep, intf, data, timeout):
        assert intf in handle.claimed
        handle.transfer()
        handle.take(bytes(data))
        return len(data)

    def bulk_read(self, handle, ep, intf, buff, timeout):
        assert intf in handle.claimed
        handle.transfer()
        packet = handle.give(timeout * 1e-3)
        if not packet:
            raise usb.core.USBTimeoutError("Operation timed out", None, errno.ETIMEDOUT)
        return _fill(buff, packet)

    intr_write, intr_read = bulk_write, bulk_read


def _fill(buff, data):
    given = array.array("B", data[: len(buff)])
    buff[: len(given)] = given
    return len(given)


def plug_in(monkeypatch, *devices):
    """Makes pyusb find these devices and no others."""
    bus = SoftwareBus(*devices)
    monkeypatch.setattr("usb.backend.libusb1.get_backend", lambda find_library=None: bus)
    return bus


class SoftwareKm003c(SoftwareDevice):
    """Answers requests for its present values in the form that drivers/hwmon/powerz.c of Linux reads."""

    ids = (0x5FC9, 0x0063)
    interfaces = ((0, VENDOR, BULK, 0x01, 0x81), (1, HID, INTERRUPT, 0x05, 0x85))

    def __init__(self, supply=None, *, silent_after=None, lose=(), kind=0x41, stale=0, reversed=False, **what):
        super().__init__(**what)
        self.supply = supply or Supply()
        self.silent_after, self.lose, self.kind, self.reversed = silent_after, set(lose), kind, reversed
        self.requests = 0
        self._answers = [self._answer(200) for _ in range(stale)]

    def take(self, data):
        assert data[0] == 0x0C and data[2:] == b"\x02\x00", "GET_DATA of attribute ADC"
        self.requests += 1
        if self.requests in self.lose or (self.silent_after is not None and self.requests > self.silent_after):
            return
        self._answers.append(self._answer(data[1]))

    def give(self, timeout_s):
        return self._answers.pop(0) if self._answers else b""

    def _answer(self, number):
        amperes, volts = self.supply.now()
        amperes = -amperes if self.reversed else amperes
        values = [round(volts * 1e6), round(amperes * 1e6)] * 3
        rest = struct.pack("<h5H8x", 25 * 128, 100, 100, 0, 0, 33000)
        head = bytes([self.kind, number, 0x80, 0x02]) + struct.pack("<HH", 0x0001, 44 << 6)
        return (head + struct.pack("<6i", *values) + rest)[:52]


def fnirsi_sum(data):
    """A second form of the checksum, bit by bit over the whole message, to check the assembler's."""
    remainder = 0x42
    for bit in (byte >> place & 1 for byte in data for place in range(7, -1, -1)):
        remainder = (remainder << 1) ^ (0x139 if (remainder >> 7 ^ bit) & 1 else 0)
        remainder &= 0xFF
    return remainder


def fnirsi_packet(samples, kind=0x04):
    """A packet of four (amperes, volts)."""
    body = bytes([kind])
    for amperes, volts in samples:
        body += struct.pack("<IIHHBH", round(volts * 1e5), round(amperes * 1e5), 600, 600, 1, 253)
    body += b"\x00"
    return b"\xaa" + body + bytes([fnirsi_sum(body)])


class SoftwareFnirsi(SoftwareDevice):
    """Sends a packet every 40 ms after its start; with `per_request`, so many for its start and each request."""

    ids = (0x2E3C, 0x5558)
    interfaces = ((0, STORAGE, BULK, 0x04, 0x84), (3, HID, INTERRUPT, 0x03, 0x83))

    def __init__(self, supply=None, *, mute=False, silent_after=None, first=(), spoil=(), per_request=None, **what):
        super().__init__(**what)
        self.per_request = self._left = per_request
        self.supply = supply or Supply()
        self.mute, self.silent_after, self._first, self.spoil = mute, silent_after, list(first), set(spoil)
        self.commands = []
        self.sent = 0
        self._due_s = None

    def take(self, data):
        assert len(data) == 64 and data[0] == 0xAA and data[-1] == fnirsi_sum(data[1:-1])
        self.commands.append(data[1])
        waited, self._left = self._left == 0, self.per_request
        if waited or (self.commands[-3:-1] == [0x81, 0x82] and self._due_s is None):
            self._due_s = time.monotonic() + 0.04

    def give(self, timeout_s):
        if (
            self.mute
            or self._due_s is None
            or self._left == 0
            or (self.silent_after is not None and self.sent >= self.silent_after)
        ):
            time.sleep(min(timeout_s, 0.05))  # the host's read waits
            return b""
        wait_s = self._due_s - time.monotonic()
        if wait_s > timeout_s:
            time.sleep(timeout_s)
            return b""
        time.sleep(max(wait_s, 0))
        self._due_s += 0.04
        self._left = None if self._left is None else self._left - 1
        self.sent += 1
        packet = self._first.pop(0) if self._first else fnirsi_packet([self.supply.now()] * 4)
        return packet[:5] + b"\x55" + packet[6:] if self.sent in self.spoil else packet
