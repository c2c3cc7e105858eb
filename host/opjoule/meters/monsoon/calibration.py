"""Converts raw values to amperes and volts, with the calibration samples that the device inserts."""

from collections import deque
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opjoule.energy.trace.power_trace import BoolArray, Float64Array
from opjoule.meters.monsoon.models import ChannelScale, Model
from opjoule.meters.monsoon.packets import Kind, PacketColumn

KEPT: Final = 5
"""Number of calibration samples of each kind that are averaged."""


class Calibration:
    """Zero and reference of one channel (means of the last few samples), and the conversions based on them."""

    def __init__(self, model: Model, channel: str, scale: ChannelScale) -> None:
        self.channel = channel
        """'main' or 'usb'"""
        self._scale, self._fine_limit = scale, model.fine_limit
        names = (f"{channel.upper()}_{name}" for name in ("COARSE", "FINE", "VOLTAGE"))
        self._coarse, self._fine, self._volts = (PacketColumn[name] for name in names)
        self._step_v = model.voltage_step_v(channel)
        self._type = np.dtype(np.int16 if model.signed else np.uint16)
        self._kept: dict[tuple[Kind, PacketColumn], deque[float]] = {
            (kind, column): deque(maxlen=KEPT)
            for kind in (Kind.ZERO, Kind.REFERENCE)
            for column in (self._coarse, self._fine)
        }

    @property
    def known(self) -> bool:
        """True once each kind has come at least once."""
        return all(self._kept.values())

    def add(self, kind: Kind, raw: npt.NDArray[np.uint16]) -> None:
        """Takes calibration samples, shape (n, 8). A raw value of 0 is ignored, as in the library."""
        for column in (self._coarse, self._fine):
            values = raw[:, column].view(self._type).astype(np.float64)
            self._kept[kind, column].extend(values[values != 0].tolist())

    def current_a(self, raw: npt.NDArray[np.uint16]) -> Float64Array:
        """Currents [A] of measurements, shape (n,), from the fine range where it is in range, else the coarse one."""
        fine, coarse = (raw[:, column].view(self._type) for column in (self._fine, self._coarse))
        fine_a = self._converted(fine, self._fine, self._scale.fine_a, self._scale.fine_zero)
        coarse_a = self._converted(coarse, self._coarse, self._scale.coarse_a, self._scale.coarse_zero)
        return np.where(fine < self._fine_limit, fine_a, coarse_a)

    def voltage_v(self, raw: npt.NDArray[np.uint16]) -> Float64Array:
        """Voltages [V] of measurements, shape (n,)."""
        return np.asarray(raw[:, self._volts] * self._step_v, np.float64)

    def clipped(self, raw: npt.NDArray[np.uint16]) -> BoolArray:
        """True where the coarse range is used and is at its converter's end, or the voltage is; shape (n,)."""
        end = np.iinfo(self._type).max
        beyond_fine = raw[:, self._fine].view(self._type) >= self._fine_limit
        coarse = raw[:, self._coarse].view(self._type)
        volts_end = raw[:, self._volts] == np.iinfo(np.uint16).max
        return np.asarray((beyond_fine & (coarse >= end)) | volts_end, np.bool_)

    def _converted(self, raw: npt.NDArray[Any], column: PacketColumn, scale_a: float, offset: float) -> Float64Array:
        zero = offset + float(np.mean(self._kept[Kind.ZERO, column]))
        reference = float(np.mean(self._kept[Kind.REFERENCE, column]))
        slope = scale_a / (reference - zero) if reference != zero else 0.0
        return np.asarray((raw - zero) * slope, np.float64)
