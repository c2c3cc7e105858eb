"""Pieces of known power beside those of opjoule.bench.simulation.parts, and loads made of them. SIMULATED."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from opjoule.bench.simulation.parts import Overlapping, Steady
from opjoule.energy.trace.power_trace import Float64Array


@dataclass(frozen=True)
class Gridded:
    """Power that is constant over steps of equal length."""

    start_s: float
    step_s: float
    power_w: Float64Array
    """Power of each step, shape (n,)."""

    def until_j(self, time_s: Float64Array) -> Float64Array:
        """Energy drawn by each moment."""
        drawn_j = np.concatenate([[0.0], np.cumsum(self.power_w * self.step_s)])
        steps = (time_s - self.start_s) / self.step_s
        return np.asarray(np.interp(steps, np.arange(drawn_j.size), drawn_j), np.float64)


@dataclass(frozen=True)
class Paused:
    """Power that is zero during pauses, which do not overlap."""

    piece: Overlapping
    start_s: Float64Array
    """Starts of the pauses, shape (k,), sorted; the ends are sorted, too."""
    end_s: Float64Array

    def until_j(self, time_s: Float64Array) -> Float64Array:
        """Energy drawn by each moment."""
        whole_j = self.piece.until_j(time_s)
        if not self.start_s.size:
            return whole_j
        at_start_j = self.piece.until_j(self.start_s)
        left_out_j = np.concatenate([[0.0], np.cumsum(self.piece.until_j(self.end_s) - at_start_j)])
        begun = np.searchsorted(self.start_s, time_s, "right")
        last = np.maximum(begun - 1, 0)
        inside = (begun > 0) & (time_s < self.end_s[last])
        return whole_j - np.where(inside, left_out_j[last] + whole_j - at_start_j[last], left_out_j[begun])


Piece = Paused | Steady | Overlapping | Gridded


def humped(rng: np.random.Generator, start_s: Float64Array, end_s: Float64Array, power_w: Float64Array) -> Overlapping:
    """Events with a flat or humped course of power, in eight steps each.

    Args:
        start_s, end_s: start and end of the events, shape (n,).
        power_w: mean power of each event, shape (n,).
    """
    shape = np.sin((np.arange(8) + 0.5) / 8 * np.pi) ** rng.uniform(0.0, 2.0)
    shape /= shape.mean()
    edges = start_s[:, None] + (end_s - start_s)[:, None] * np.arange(9) / 8
    return Overlapping(edges[:, :-1].ravel(), edges[:, 1:].ravel(), (power_w[:, None] * shape).ravel())


def bursts(rng: np.random.Generator, end_s: float, per_s: float, mean_w: float) -> Overlapping:
    """Work of the board's other programs at any time: 20 us to 1 s, uniform on a logarithmic scale."""
    count = rng.poisson(per_s * end_s)
    length_s = np.exp(rng.uniform(np.log(20e-6), np.log(1.0), count))
    usual_s = (1.0 - 20e-6) / np.log(1.0 / 20e-6)
    power_w = rng.uniform(0.2, 1.8, count) * mean_w / (per_s * usual_s)
    start_s = rng.uniform(-1.0, end_s, count)
    return Overlapping(start_s, start_s + length_s, np.minimum(power_w, 0.5))


def wander(rng: np.random.Generator, end_s: float, mean_w: float, sigma_w: float) -> Gridded:
    """Idle power with a level that wanders (temperature, regulators), correlated over a second or two."""
    step_s, tau_s = 0.05, rng.uniform(0.3, 2.0)
    count = int(end_s / step_s) + 2
    keep = np.exp(-step_s / tau_s)
    drive = rng.normal(0, sigma_w * np.sqrt(1 - keep**2), count)
    level = np.empty(count)
    now = rng.normal(0, sigma_w)
    for index, kick in enumerate(drive.tolist()):
        now = keep * now + kick
        level[index] = now
    return Gridded(0.0, step_s, mean_w + level)
