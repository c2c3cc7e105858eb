"""Kinds of current that a board may draw, on a grid of 20 us, for the validation scripts. SIMULATED throughout."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
Generator = np.random.Generator
GRID_S = 20e-6


def steps_at(rng: Generator, count: int, shortest_s: float, longest_s: float) -> npt.NDArray[np.bool_]:
    """Switches on and off alternately; the lengths are uniform on a logarithmic scale."""
    high = np.zeros(count, np.bool_)
    lengths = np.exp(rng.uniform(np.log(shortest_s), np.log(longest_s), int(2 * count * GRID_S / shortest_s) + 2))
    edges = np.minimum((np.cumsum(lengths) / GRID_S).astype(np.int64), count)
    for start, end in zip(edges[0::2], edges[1::2], strict=False):
        if start >= count:
            break
        high[start:end] = True
    return high


def quiet(rng: Generator, count: int) -> Float64Array:
    """Constant current, with less noise than a tenth of the sensor's step."""
    return np.full(count, rng.uniform(0.6, 1.2))


def noisy(rng: Generator, count: int) -> Float64Array:
    """Constant current with noise of 0.03 A below 1.6 kHz (a board has capacitors at its input) and a slow wander."""
    knots = np.cumsum(rng.normal(0, 0.005, count // 5000 + 2))
    wander = np.interp(np.arange(count) / 5000, np.arange(knots.size), knots)
    decay = np.exp(-np.arange(50) * GRID_S / 100e-6)
    noise = np.convolve(rng.normal(0, 0.1, count), decay * (1 - decay[1]))[:count]
    return rng.uniform(0.6, 1.2) + wander + noise


def long_bursts(rng: Generator, count: int) -> Float64Array:
    """About 40 ms on, about as long off."""
    low, high = rng.uniform(0.35, 0.6), rng.uniform(0.9, 1.5)
    return np.where(steps_at(rng, count, 0.035, 0.046), high, low)


def short_bursts(rng: Generator, count: int) -> Float64Array:
    """50 us to 1 ms on and off."""
    low, high = rng.uniform(0.35, 0.6), rng.uniform(0.9, 1.5)
    return np.where(steps_at(rng, count, 50e-6, 1e-3), high, low)


def mixed_bursts(rng: Generator, count: int) -> Float64Array:
    """50 us to 1 s on and off."""
    low, high = rng.uniform(0.35, 0.6), rng.uniform(0.9, 1.5)
    return np.where(steps_at(rng, count, 50e-6, 1.0), high, low)


def fast_bursts(rng: Generator, count: int) -> Float64Array:
    """20 to 100 us on and off, far shorter than a conversion."""
    low, high = rng.uniform(0.35, 0.6), rng.uniform(0.9, 1.5)
    return np.where(steps_at(rng, count, 20e-6, 100e-6), high, low)


def switching(rng: Generator, count: int) -> Float64Array:
    """On or off at random in each step of 20 us, with the same probability: the fastest load that the grid allows."""
    low, high = rng.uniform(0.35, 0.6), rng.uniform(0.9, 1.5)
    return np.where(rng.random(count) < rng.uniform(0.2, 0.8), high, low)


def ramp(rng: Generator, count: int) -> Float64Array:
    """From one current to another and back."""
    low, high = rng.uniform(0.35, 0.6), rng.uniform(0.9, 1.5)
    return low + (high - low) * (1 - np.abs(np.linspace(-1, 1, count)))


def flicker(rng: Generator, count: int) -> Float64Array:
    """A step about every 11 ms; about three quarters of all stretches of 16 samples contain one."""
    low, high = rng.uniform(0.35, 0.6), rng.uniform(0.9, 1.5)
    return np.where(steps_at(rng, count, 0.009, 0.014), high, low)
