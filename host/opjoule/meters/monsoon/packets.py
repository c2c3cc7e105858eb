"""Monsoon's 64-byte packets, many at once.

    byte 0-1   samples dropped since start, uint16 little endian, wraps
    byte 2     bits 0-3: number of the packet modulo 16; 4: overcurrent or thermal kill; 5: main output at voltage
    byte 3     observations in this packet, 1 to 3
    byte 4-57  three observations of 18 bytes; unused ones are padding

An observation: main coarse, main fine, USB coarse, USB fine, aux coarse, aux fine, main voltage, USB voltage, each
16 bits big endian; a byte of gain and marker bits; a byte whose bits 4 and 5 state what was converted.
Source: PyMonsoon 0.1.88 (swizzlePacket, SampleEngine) and the vendor's API document (table 1); the code is this
project's own.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import MeterFault
from opjoule.energy.trace.power_trace import BoolArray, Int64Array

PACKET_BYTES: Final = 64
OBSERVATIONS_MAX: Final = 3
_OBSERVATION_BYTES: Final = 18
_KIND_BITS: Final = 0x30


class Kind(IntEnum):
    """Content of one observation."""

    MEASUREMENT = 0x00
    ZERO = 0x10
    """input shorted: the converter's offset"""
    INVALID = 0x20
    REFERENCE = 0x30
    """reference current: the converter's gain"""


class PacketColumn(IntEnum):
    """Columns of the raw values."""

    MAIN_COARSE = 0
    MAIN_FINE = 1
    USB_COARSE = 2
    USB_FINE = 3
    AUX_COARSE = 4
    AUX_FINE = 5
    MAIN_VOLTAGE = 6
    USB_VOLTAGE = 7


@dataclass(frozen=True)
class Packets:
    """The fields of n consecutive packets with m observations."""

    dropped: Int64Array
    """the device's own count of dropped samples, modulo 2^16, shape (n,)"""
    sequence: Int64Array
    """modulo 16, shape (n,)"""
    tripped: BoolArray
    """True if overcurrent or heat made the device cut its output, shape (n,)"""
    output_off: BoolArray
    """True if the main output is not at voltage, shape (n,)"""
    count: Int64Array
    """observations of each packet, shape (n,)"""
    raw: npt.NDArray[np.uint16]
    """shape (m, 8), columns as in PacketColumn"""
    kind: npt.NDArray[np.uint8]
    """shape (m,), values of Kind"""


def decode(data: bytes) -> Packets:
    """Decodes packets. Raises: MeterFault: a packet is not whole, or states more than three observations."""
    if len(data) % PACKET_BYTES:
        raise MeterFault(f"monsoon: {len(data)} bytes are not a whole number of packets of {PACKET_BYTES}")
    packets = np.frombuffer(data, np.uint8).reshape(-1, PACKET_BYTES)
    count = packets[:, 3]
    if count.size and int(count.max()) > OBSERVATIONS_MAX:
        raise MeterFault(
            f"monsoon: a packet claims {int(count.max())} observations, at most {OBSERVATIONS_MAX} fit: reset it"
        )
    header = packets[:, :3].astype(np.int64)
    last = 4 + OBSERVATIONS_MAX * _OBSERVATION_BYTES
    slots = packets[:, 4:last].reshape(-1, OBSERVATIONS_MAX, _OBSERVATION_BYTES)
    filled = slots[np.arange(OBSERVATIONS_MAX) < count[:, None]]
    raw = np.ascontiguousarray(filled[:, :16]).view(">u2").astype(np.uint16)
    return Packets(
        dropped=header[:, 0] | header[:, 1] << 8,
        sequence=header[:, 2] & 0xF,
        tripped=(header[:, 2] & 0x10) != 0,
        output_off=(header[:, 2] & 0x20) == 0,
        count=count.astype(np.int64),
        raw=raw,
        kind=np.bitwise_and(filled[:, 17], _KIND_BITS, dtype=np.uint8),
    )


def whole_packets(data: bytes) -> bytes:
    """The data of one read as whole packets; a short last packet is padded."""
    return data + bytes(-len(data) % PACKET_BYTES)
