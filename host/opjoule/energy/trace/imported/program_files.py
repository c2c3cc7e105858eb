"""What other programs save in formats of their own: sessions of the PPK2's, and recordings of the Joulescope's.

nRF Connect Power Profiler saves the samples of a Power Profiler Kit II in a ZIP file:

    metadata.json   {"metadata": {"samplesPerSecond": 100000, ...}, "formatVersion": 2}
    session.raw     one frame a sample: the current [µA] as a float of 32 bits, 16 bits of the logic port, little endian

Source: github.com/NordicSemiconductor/pc-nrfconnect-ppk, src/utils/saveFileHandler.ts, src/globals.ts. A Joulescope's
.jls files are read with their maker's library, pyjls.
"""

from __future__ import annotations

import json
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from opjoule.base.errors import BadInput
from opjoule.energy.trace.power_trace import Float64Array


@dataclass
class Signals:
    """The contents of a file; arrays of shape (n,)."""

    kind: str
    """format of the file"""
    columns: dict[str, str]
    """role (time, current, voltage, power) -> name of its column or signal"""
    time_s: Float64Array
    """increasing"""
    values: dict[str, Float64Array]
    """current [A], voltage [V] and power [W], as far as the file has them; NaN where a value is missing"""
    notes: list[str] = field(default_factory=list)
    """assumptions made"""
    place: Callable[[int], str] = lambda row: f"row {row + 1}"
    """where a row is in the file, in words"""


FRAME: Final = np.dtype([("current_ua", "<f4"), ("bits", "<u2")])
MEANS_HZ: Final = 5_000
"""Rate of the means that are recorded, as when the meter is read directly."""
METADATA_MAX: Final = 1 << 20
RATE_MAX_HZ: Final = 1_000_000
_PPK2_BLOCK_MEANS: Final = 1 << 12


def ppk2_signals(path: Path) -> Signals:
    """The current of a session. Raises: BadInput: the file is damaged, or no session of a PPK2."""
    try:
        with zipfile.ZipFile(path) as session:
            rate_hz = _rate_hz(path, session)
            together = max(round(rate_hz / MEANS_HZ), 1)
            current_a = _means_a(session, together)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError) as fault:
        raise BadInput(f"{path}: damaged: {fault}: save the session again, or export it as CSV") from None
    except KeyError:
        raise BadInput(f"{path}: a ZIP file that is no session of a Power Profiler Kit II: unpack it first") from None
    note = f"means of {together} of its {rate_hz:g} samples a second"
    time_s = np.arange(current_a.size, dtype=np.float64) * (together / rate_hz)
    return Signals("ppk2", {"current": "session.raw"}, time_s, {"current": current_a}, [note] if together > 1 else [])


def _rate_hz(path: Path, session: zipfile.ZipFile) -> float:
    """Samples a second. Raises: BadInput: the metadata do not say. KeyError: there are none."""
    with session.open("metadata.json") as file:
        text = file.read(METADATA_MAX)
    try:
        rate_hz = float(json.loads(text)["metadata"]["samplesPerSecond"])
    except (ValueError, TypeError, KeyError, RecursionError):
        rate_hz = 0.0
    if not 0.0 < rate_hz <= RATE_MAX_HZ:
        raise BadInput(f"{path}: metadata.json states no samplesPerSecond from 1 to {RATE_MAX_HZ}: export it as CSV")
    return rate_hz


def _means_a(session: zipfile.ZipFile, together: int) -> Float64Array:
    """Means of `together` samples each [A], without those that are NaN; NaN where all are.

    Raises: KeyError: the session has no samples.
    """
    size = together * FRAME.itemsize
    means = [np.zeros(0)]
    with session.open("session.raw") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of no sample is NaN
        while len(block := file.read(_PPK2_BLOCK_MEANS * size)) >= size:
            frames = np.frombuffer(block[: len(block) // size * size], FRAME)
            means.append(np.nanmean(frames["current_ua"].astype(np.float64).reshape(-1, together), axis=1))
    return np.concatenate(means) * 1e-6


MAGIC: Final = b"jlsfmt\r\n"
"""First bytes of a file (github.com/jetperch/jls, include/jls/format.h)."""
_JLS_BLOCK_MEANS: Final = 1 << 10
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
        for low in range(0, count, _JLS_BLOCK_MEANS):
            high = min(low + _JLS_BLOCK_MEANS, count)
            some = low * together, (high - low) * together
            amperes, volts = (
                np.asarray(reader.fsr(signal.signal_id, *some), np.float64).reshape(-1, together)
                for signal in (current, voltage)
            )
            voltage_v[low:high] = np.nanmean(volts, axis=1)
            current_a[low:high] = np.nanmean(amperes * volts, axis=1) / voltage_v[low:high]
    return current_a, voltage_v
