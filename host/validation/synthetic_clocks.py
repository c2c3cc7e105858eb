"""Two clocks with known truth and the sync line between them, for the validation scripts.

SIMULATED throughout. Nothing here is a measurement of an oscillator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

STEP_S = 0.25
"""Distance of the points between which the true rate is linear."""
MARGIN_S = 60.0
RESONATOR_PPM = 6000.0
U_DELAY_NS = 500.0
"""Standard uncertainty of the delay that all edges share."""
METER_U_NS = 500.0
LOST, INVENTED, LATE = 0.02, 0.02, 0.01
"""Shares of the edges."""


def _steady(rng: np.random.Generator, time_s: Float64Array, _duration_s: float) -> Float64Array:
    return np.zeros(time_s.size)


def _linear(rng: np.random.Generator, time_s: Float64Array, _duration_s: float) -> Float64Array:
    """Crystal that drifts by 3 ppm an hour, up or down."""
    return rng.choice([-1.0, 1.0]) * 3e-6 * time_s / 3600


def _warm_up(rng: np.random.Generator, time_s: Float64Array, _duration_s: float) -> Float64Array:
    """Resonator that warms up: 30 ppm, with a time constant of 2 to 6 minutes."""
    return rng.choice([-1.0, 1.0]) * 30e-6 * np.exp(-np.maximum(time_s, 0.0) / rng.uniform(120, 360))


def _cold_start(rng: np.random.Generator, time_s: Float64Array, _duration_s: float) -> Float64Array:
    """Resonator and board that warm up from cold: 10 to 60 ppm, with a time constant of 30 s to 10 minutes."""
    size, constant_s = rng.uniform(10, 60) * 1e-6, np.exp(rng.uniform(np.log(30), np.log(600)))
    return rng.choice([-1.0, 1.0]) * size * np.exp(-np.maximum(time_s, 0.0) / constant_s)


def _swing(rng: np.random.Generator, time_s: Float64Array, _duration_s: float) -> Float64Array:
    """Air conditioning, a fan or a changing load: 0.3 to 3 ppm, with a period of 1 to 20 minutes."""
    period_s = np.exp(rng.uniform(np.log(60), np.log(1200)))
    return rng.uniform(0.3, 3) * 1e-6 * np.sin(2 * np.pi * time_s / period_s + rng.uniform(0, 6.3))


def _walk(rng: np.random.Generator, time_s: Float64Array, _duration_s: float) -> Float64Array:
    """Random walk with a variance of 1e-15 to 1e-12 a second, which is 2 to 60 ppm in an hour."""
    strength = 10.0 ** rng.uniform(-15, -12)
    return np.cumsum(rng.normal(0.0, np.sqrt(strength * STEP_S), time_s.size))


def _step(rng: np.random.Generator, time_s: Float64Array, duration_s: float) -> Float64Array:
    """Step of 1 to 5 ppm at a random time."""
    size = rng.choice([-1.0, 1.0]) * rng.uniform(1, 5) * 1e-6
    return size * (time_s > rng.uniform(0.1, 0.9) * duration_s)


SHAPES: dict[str, Callable[[np.random.Generator, Float64Array, float], Float64Array]] = {
    "steady": _steady,
    "linear": _linear,
    "warm-up": _warm_up,
    "cold start": _cold_start,
    "swing": _swing,
    "random walk": _walk,
    "step": _step,
}


@dataclass(frozen=True)
class SyncLine:
    """Edges of one sync line as board and meter recorded them, and the truth."""

    board_ns: Int64Array
    board_level: npt.NDArray[np.int8]
    board_u_ns: Float64Array
    board_edge: Int64Array
    """Number of the true edge."""
    meter_ns: Int64Array
    meter_level: npt.NDArray[np.int8]
    meter_edge: Int64Array
    """Number of the true edge; negative for an invented one."""
    meter_u_ns: float
    delay_ns: float
    """Delay from toggling to capture, common to all edges."""
    board_start_ns: int
    meter_start_ns: int
    rate_ppm: float
    deviation: Float64Array
    """Rate of the meter against the board minus its constant part, every STEP_S from -MARGIN_S on."""
    phase_s: Float64Array
    """Integral of `deviation`."""

    def moment_s(self, board_ns: Int64Array) -> Float64Array:
        """Seconds of the board's clock since the start."""
        return np.asarray((board_ns - self.board_start_ns) * 1e-9, np.float64)

    def on_board_ns(self, moment_s: Float64Array) -> Int64Array:
        """Reading of the board's clock at these seconds."""
        return np.asarray(self.board_start_ns + np.rint(moment_s * 1e9), np.int64)

    def on_meter_ns(self, moment_s: Float64Array) -> Int64Array:
        """Reading of the meter's clock at these seconds."""
        at = np.clip(((moment_s + MARGIN_S) / STEP_S).astype(np.int64), 0, self.phase_s.size - 2)
        since_s = moment_s + MARGIN_S - at * STEP_S
        slope = (self.deviation[at + 1] - self.deviation[at]) / STEP_S
        beyond_s = self.phase_s[at] + self.deviation[at] * since_s + slope * since_s**2 / 2
        beyond_s = beyond_s + self.rate_ppm * 1e-6 * moment_s
        moved = np.rint(moment_s * 1e9).astype(np.int64) + np.rint(beyond_s * 1e9).astype(np.int64)
        return np.asarray(self.meter_start_ns + moved, np.int64)


def sync_line(
    rng: np.random.Generator,
    shape: str,
    duration_s: float,
    *,
    delay_ns: float = 0.0,
    ppm: float = RESONATOR_PPM,
    lost: float = LOST,
) -> SyncLine:
    """Draws a run with a random offset and constant rate, and a course of the rate of one shape.

    Args:
        lost: share of the edges that each side misses, independently of the other.
    """
    points = int((duration_s + 2 * MARGIN_S) / STEP_S) + 2
    deviation = SHAPES[shape](rng, np.arange(points) * STEP_S - MARGIN_S, duration_s)
    phase_s = np.concatenate([[0.0], np.cumsum((deviation[1:] + deviation[:-1]) / 2) * STEP_S])
    none = np.empty(0, np.int64)
    truth = SyncLine(
        board_ns=none,
        board_level=none.astype(np.int8),
        board_u_ns=np.empty(0),
        board_edge=none,
        meter_ns=none,
        meter_level=none.astype(np.int8),
        meter_edge=none,
        meter_u_ns=METER_U_NS,
        delay_ns=delay_ns,
        board_start_ns=int(rng.integers(10**9, 10**15)),
        meter_start_ns=int(rng.integers(10**9, 10**13)),
        rate_ppm=float(rng.uniform(-ppm, ppm)),
        deviation=deviation,
        phase_s=phase_s,
    )
    return _recorded(rng, truth, _toggles_s(rng, duration_s), lost)


def _toggles_s(rng: np.random.Generator, duration_s: float) -> Float64Array:
    """Toggle times of loaders: phases of 5 s and more, with edges at both ends and every 0.5 to 1.5 s; then a pause."""
    toggles: list[float] = []
    at_s = 0.0
    while at_s < duration_s:
        end_s = min(at_s + rng.uniform(5, max(6.0, min(duration_s / 4, 300.0))), duration_s)
        inner = at_s + np.cumsum(rng.uniform(0.5, 1.5, int(2 * (end_s - at_s)) + 2))
        toggles += [at_s, *inner[inner < end_s].tolist(), end_s]
        at_s = end_s + rng.uniform(0.3, min(20.0, 1.0 + duration_s / 20))
    return np.array(toggles)


def _recorded(rng: np.random.Generator, truth: SyncLine, toggle_s: Float64Array, lost: float) -> SyncLine:
    """Simulates the toggles as both sides record them."""
    count = toggle_s.size
    level = ((np.arange(count) + rng.integers(2)) % 2).astype(np.int8)
    u_ns = np.exp(rng.normal(np.log(600.0), 0.5, count))
    board_ns = truth.on_board_ns(toggle_s) + np.rint(rng.normal(0, u_ns)).astype(np.int64)
    late = rng.random(count) < LATE
    board_ns = board_ns - np.where(late, rng.integers(10_000, 3_000_000, count), 0)
    meter_ns = truth.on_meter_ns(toggle_s) + np.rint(truth.delay_ns + rng.normal(0, METER_U_NS, count)).astype(np.int64)
    kept_board, kept_meter = rng.random(count) > lost, rng.random(count) > lost
    glitches = rng.poisson(INVENTED * count)
    glitch_ns = rng.integers(meter_ns[0], meter_ns[-1], glitches)
    number = np.arange(count)
    seen_ns = np.concatenate([meter_ns[kept_meter], glitch_ns])
    seen_level = np.concatenate([level[kept_meter], rng.integers(0, 2, glitches).astype(np.int8)])
    seen_edge = np.concatenate([number[kept_meter], np.full(glitches, -1)])
    order = np.argsort(seen_ns, kind="stable")
    inverted = int(rng.integers(2))
    return SyncLine(
        **{
            **truth.__dict__,
            "board_ns": board_ns[kept_board],
            "board_level": level[kept_board],
            "board_u_ns": u_ns[kept_board],
            "board_edge": number[kept_board],
            "meter_ns": seen_ns[order],
            "meter_level": (seen_level[order] ^ inverted).astype(np.int8),
            "meter_edge": seen_edge[order],
        }
    )
