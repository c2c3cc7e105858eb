"""Exactly known power: pieces with a closed integral up to any moment. SIMULATED throughout.

A piece's `until_j` takes moments [s], shape (m,), on the clock of the piece's times, and returns the energy [J] drawn
up to each of them, shape (m,).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opjoule.trace.power_trace import Float64Array


@dataclass(frozen=True)
class Steady:
    """Consecutive pieces of constant power without overlap, with pauses between them."""

    start_s: Float64Array
    """shape (n,), sorted, as are the ends"""
    end_s: Float64Array
    energy_j: Float64Array
    """Energy of each piece, shape (n,)."""

    def until_j(self, time_s: Float64Array) -> Float64Array:
        """Energy drawn up to each moment."""
        if not self.start_s.size:
            return np.zeros_like(time_s)
        knots_s, drawn_j = self._course
        return np.asarray(np.interp(time_s, knots_s, drawn_j), np.float64)

    @cached_property
    def _course(self) -> tuple[Float64Array, Float64Array]:
        """Starts and ends alternately, and the energy drawn up to each, shape (2 n,)."""
        knots_s = np.empty(2 * self.start_s.size)
        knots_s[0::2], knots_s[1::2] = self.start_s, self.end_s
        drawn_j = np.concatenate([[0.0], np.cumsum(self.energy_j)])
        at_knots_j = np.empty_like(knots_s)
        at_knots_j[0::2], at_knots_j[1::2] = drawn_j[:-1], drawn_j[1:]
        return knots_s, at_knots_j


@dataclass(frozen=True)
class Overlapping:
    """Pieces of constant power that may overlap."""

    start_s: Float64Array
    """shape (n,), in any order"""
    end_s: Float64Array
    power_w: Float64Array
    """Power of each piece, shape (n,)."""

    def until_j(self, time_s: Float64Array) -> Float64Array:
        """Energy drawn up to each moment."""
        return _since(time_s, self.start_s, self.power_w) - _since(time_s, self.end_s, self.power_w)


def _since(time_s: Float64Array, moment_s: Float64Array, power_w: Float64Array) -> Float64Array:
    order = np.argsort(moment_s)
    before = np.searchsorted(moment_s[order], time_s)
    power = np.concatenate([[0.0], np.cumsum(power_w[order])])[before]
    moment = np.concatenate([[0.0], np.cumsum((power_w * moment_s)[order])])[before]
    return np.asarray(power * time_s - moment)
