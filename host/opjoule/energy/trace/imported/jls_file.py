"""Recordings of a Joulescope in its own format, read with its maker's library, pyjls."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from opjoule.base.errors import BadInput
from opjoule.energy.trace.imported.signals import Signals
from opjoule.energy.trace.power_trace import Float64Array

MAGIC: Final = b"jlsfmt\r\n"
"""First bytes of a file (github.com/jetperch/jls, include/jls/format.h)."""
MEANS_HZ: Final = 5_000
"""Rate of the means that are recorded, as when the meter is read directly."""
_BLOCK_MEANS: Final = 1 << 10
_NEEDED: Final = ("current", "voltage")


def is_jls(path: Path) -> bool:
    """Whether a file is a recording of a Joulescope."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def jls_signals(path: Path) -> Signals:
    """Current and voltage, whose products are the means of the power.

    Raises: BadInput: pyjls is not installed, the file is damaged, or it lacks a signal.
    """
    try:
        import pyjls  # noqa: PLC0415
    except ImportError:
        raise BadInput(
            f"{path}: reading .jls files needs pyjls: .venv/bin/pip install -r host/requirements/joulescope.in, or "
            "export the file as CSV"
        ) from None
    try:
        with pyjls.Reader(str(path)) as reader:
            return _signals(path, reader)
    except (RuntimeError, ValueError, OSError) as fault:
        raise BadInput(f"{path}: damaged: {fault}: export it as CSV with the Joulescope's own program") from None


def _signals(path: Path, reader: Any) -> Signals:
    by_name: dict[str, list[Any]] = {name: [] for name in _NEEDED}
    for signal in reader.signals.values():
        if signal.name in by_name and signal.length:
            by_name[signal.name].append(signal)
    counts = {name: len(found) for name, found in by_name.items()}
    if set(counts.values()) != {1}:
        listed = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise BadInput(f"{path}: needs one signal of current and one of voltage, has {listed}: export it as CSV")
    current, voltage = (by_name[name][0] for name in _NEEDED)
    if current.sample_rate != voltage.sample_rate:
        rates = f"{current.sample_rate:g} and {voltage.sample_rate:g} a second"
        raise BadInput(f"{path}: current and voltage have other rates, {rates}: export it as CSV")
    together = max(round(current.sample_rate / MEANS_HZ), 1)
    current_a, voltage_v = _means(reader, current, voltage, together)
    time_s = np.arange(current_a.size) * (together / current.sample_rate)
    note = f"means of {together} of its {current.sample_rate:g} samples a second"
    return Signals(
        "joulescope",
        {name: name for name in _NEEDED},
        time_s,
        {"current": current_a, "voltage": voltage_v},
        [note] if together > 1 else [],
    )


def _means(reader: Any, current: Any, voltage: Any, together: int) -> tuple[Float64Array, Float64Array]:
    """Means over `together` samples each: the power's by the voltage's [A], and the voltage's [V]."""
    count = min(current.length, voltage.length) // together
    current_a, voltage_v = np.empty(count), np.empty(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of no sample is NaN
        for low in range(0, count, _BLOCK_MEANS):
            high = min(low + _BLOCK_MEANS, count)
            some = low * together, (high - low) * together
            amperes, volts = (
                np.asarray(reader.fsr(signal.signal_id, *some), np.float64).reshape(-1, together)
                for signal in (current, voltage)
            )
            voltage_v[low:high] = np.nanmean(volts, axis=1)
            current_a[low:high] = np.nanmean(amperes * volts, axis=1) / voltage_v[low:high]
    return current_a, voltage_v
