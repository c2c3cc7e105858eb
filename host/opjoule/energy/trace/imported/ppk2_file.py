"""Sessions that nRF Connect Power Profiler saves: a ZIP file with the samples of a Power Profiler Kit II.

    metadata.json   {"metadata": {"samplesPerSecond": 100000, ...}, "formatVersion": 2}
    session.raw     one frame a sample: the current [µA] as a float of 32 bits, 16 bits of the logic port, little endian

Source: github.com/NordicSemiconductor/pc-nrfconnect-ppk, src/utils/saveFileHandler.ts, src/globals.ts.
"""

from __future__ import annotations

import json
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.base.errors import BadInput
from opjoule.energy.trace.imported.signals import Signals
from opjoule.energy.trace.power_trace import Float64Array

FRAME: Final = np.dtype([("current_ua", "<f4"), ("bits", "<u2")])
MEANS_HZ: Final = 5_000
"""Rate of the means that are recorded, as when the meter is read directly."""
METADATA_MAX: Final = 1 << 20
RATE_MAX_HZ: Final = 1_000_000
_BLOCK_MEANS: Final = 1 << 12


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
        while len(block := file.read(_BLOCK_MEANS * size)) >= size:
            frames = np.frombuffer(block[: len(block) // size * size], FRAME)
            means.append(np.nanmean(frames["current_ua"].astype(np.float64).reshape(-1, together), axis=1))
    return np.concatenate(means) * 1e-6
