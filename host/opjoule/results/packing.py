"""Packs columns of numbers into short texts that the report's page unpacks with assets/packing.js.

A column becomes integers, their bytes are sorted by significance (all lowest bytes first), deflated and written as
base64: about two bytes a sample for a noisy current, a few hundred bytes for evenly spaced times.

    values    code = round((value - offset) / step), uint16; 65535 means "not known" (NaN)
    times     difference to the previous time in microseconds, uint32; the first one from 0
"""

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

UNKNOWN = 65535
STEPS = 65534

Floats = npt.NDArray[np.float64]


def pack_values(values: Floats) -> dict[str, Any]:
    """Packs values, shape (n,), to 1/65534 of their range; NaN stays NaN.

    Returns: {"offset", "step", "n", "data"}; value = offset + step * code.
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = (high - low) / STEPS or 1.0
    with np.errstate(invalid="ignore"):
        codes = np.where(np.isfinite(values), np.rint((values - low) / step), UNKNOWN).astype("<u2")
    return {"offset": low, "step": step, "n": len(values), "data": _text(codes)}


def pack_times(times_s: Floats) -> dict[str, Any]:
    """Packs rising times [s], shape (n,), to whole microseconds; neighbours are at most 2^32 us (71 minutes) apart.

    Returns: {"offset" [s], "n", "data"}.
    Raises: ValueError: times that fall or jump too far.
    """
    offset = float(times_s[0]) if len(times_s) else 0.0
    steps_us = np.diff(np.rint((times_s - offset) * 1e6), prepend=0.0)
    if len(times_s) and (steps_us.min() < 0 or steps_us.max() >= 2**32):
        least_s = steps_us.min() / 1e6
        raise ValueError(f"times of a report must rise by less than 4294 s at a time, found {least_s} s")
    return {"offset": offset, "n": len(times_s), "data": _text(steps_us.astype("<u4"))}


def _text(codes: npt.NDArray[Any]) -> str:
    by_significance = codes.view(np.uint8).reshape(len(codes), codes.itemsize).T
    return base64.b64encode(zlib.compress(by_significance.tobytes())).decode("ascii")
