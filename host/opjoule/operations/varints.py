"""Bulk decoding of LEB128 varints with numpy, in four array passes instead of a loop over bytes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

LENGTH_MAX: Final = 10
_KEEP_4: Final = np.array([0x7F, 0x7F7F, 0x7F7F7F, 0x7F7F7F7F], np.uint32)


def decode_varints(payload: bytes) -> npt.NDArray[np.uint64]:
    """All varints of a payload, in order. Raises: ValueError: one is cut off, or longer than 64 bits."""
    if not payload:
        return np.empty(0, np.uint64)
    padded = payload + bytes(LENGTH_MAX)
    octets = np.frombuffer(padded, np.uint8)
    last = np.flatnonzero(octets[: len(payload)] < 0x80)
    if last.size == 0 or last[-1] != len(payload) - 1:
        raise ValueError("the payload ends inside a varint")
    first = np.empty_like(last)
    first[0] = 0
    np.add(last[:-1], 1, out=first[1:])
    extra = last - first
    values = _up_to_4_bytes(padded, len(payload), first, extra).astype(np.uint64)
    longer = np.flatnonzero(extra > 3)
    if longer.size:
        values[longer] = _any_length(octets, first[longer], extra[longer])
    return values


def _up_to_4_bytes(
    padded: bytes, size: int, first: npt.NDArray[np.intp], extra: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint32]:
    """Decodes varints of up to 4 bytes: one unaligned 4-byte load each, then the four groups of 7 bits are joined."""
    word: npt.NDArray[np.uint32] = np.ndarray((size,), "<u4", padded, strides=(1,)).take(first)
    word &= _KEEP_4.take(extra, mode="clip")
    value = word & np.uint32(0x7F)
    value |= (word & np.uint32(0x7F00)) >> np.uint32(1)
    value |= (word & np.uint32(0x7F0000)) >> np.uint32(2)
    value |= (word & np.uint32(0x7F000000)) >> np.uint32(3)
    return value


def _any_length(
    octets: npt.NDArray[np.uint8], first: npt.NDArray[np.intp], extra: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint64]:
    longest = int(extra.max())
    if longest >= LENGTH_MAX or bool(np.any(octets[first[extra == LENGTH_MAX - 1] + LENGTH_MAX - 1] > 1)):
        raise ValueError("a varint is longer than 64 bits")
    value = np.zeros(first.size, np.uint64)
    for position in range(longest + 1):
        rows = np.flatnonzero(extra >= position)
        group = (octets[first[rows] + position] & np.uint8(0x7F)).astype(np.uint64)
        value[rows] |= group << np.uint64(7 * position)
    return value
