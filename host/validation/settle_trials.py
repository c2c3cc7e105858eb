"""SIMULATED: counts how often settle misses a tail, and how often it refuses a board at rest.

Each trial draws a board's idle power over time, an idle phase, a run, and a tail of some mW that lasts for 15 s after
the last write. The tail is *missed* if settle ends before the tail does. Without a tail, the board is *reported* if
settle ends with a fault, and *refused* if that fault withholds figures. The times come from the host's own settle, in
steps of a tenth of a second.

    .venv/bin/python host/validation/settle_trials.py --trials 400
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from unittest import mock

import numpy as np
from known_pieces import wander
from opjoule.base.notices import Notice
from opjoule.energy.trace.power_history import BLOCK_NS, PowerHistory
from opjoule.runs.measuring import settling
from opjoule.runs.measuring.settling import Rest, Settling

IDLE_W = 3.0
BLOCK_S = BLOCK_NS * 1e-9
TAIL_LASTS_S = 15.0
RUN_S = 20.0
LIMIT_S = 60.0
Boards = dict[str, Callable[[np.random.Generator, np.ndarray, float], np.ndarray]]


def _wandering(sigma_w: float) -> Callable[[np.random.Generator, np.ndarray, float], np.ndarray]:
    def draw(rng: np.random.Generator, at_s: np.ndarray, idle_s: float) -> np.ndarray:
        course = wander(rng, float(at_s[-1]) + 1.0, IDLE_W, sigma_w)
        return np.diff(course.until_j(np.append(at_s, at_s[-1] + BLOCK_S))) / BLOCK_S

    return draw


def _drifting(rng: np.random.Generator, at_s: np.ndarray, idle_s: float) -> np.ndarray:
    """Idle power 0.1 to 1 % higher after the run, from warming; it decays with a time constant of 60 to 300 s."""
    since_s = np.maximum(at_s - idle_s, 0.0)
    warm_w = IDLE_W * rng.uniform(0.001, 0.01) * np.exp(-since_s / rng.uniform(60.0, 300.0))
    return IDLE_W + np.where(at_s < idle_s, 0.0, warm_w) + rng.normal(0, 2e-3, at_s.size)


def _woken(rng: np.random.Generator, at_s: np.ndarray, idle_s: float) -> np.ndarray:
    """Idle power with a monitor that wakes every 5 s for 0.1 s."""
    woken = np.floor((at_s + rng.uniform(0, 5)) / BLOCK_S) % 50 == 0
    return IDLE_W + woken * rng.uniform(0.1, 1.0) + rng.normal(0, 2e-3, at_s.size)


def _beating(rng: np.random.Generator, at_s: np.ndarray, idle_s: float) -> np.ndarray:
    """Idle power with ripple of up to 0.3 % that beats with the voltage readings."""
    beat = np.sin(2 * np.pi * (10 ** rng.uniform(-1.5, 0.5) * at_s + rng.random()))
    return IDLE_W * (1 + rng.uniform(0.0, 0.003) * beat) + rng.normal(0, 2e-3, at_s.size)


def _slow_meter(rng: np.random.Generator, at_s: np.ndarray, idle_s: float) -> np.ndarray:
    """Ten readings a second with 20 mW of noise; they come unevenly, so some tenths of a second have none."""
    power_w = IDLE_W + rng.normal(0, 0.02, at_s.size)
    power_w[rng.random(at_s.size) < 0.08] = np.nan
    return power_w


BOARDS: Boards = {
    "even (wander 1 mW)": _wandering(1e-3),
    "wander 3 mW": _wandering(3e-3),
    "wander 10 mW": _wandering(1e-2),
    "ripple that beats": _beating,
    "warmer after the run": _drifting,
    "monitor each 5 s": _woken,
    "meter of 10 Hz": _slow_meter,
}


class GrowingTrace:
    """Power trace that grows while settle sleeps."""

    def __init__(self, power_w: np.ndarray, start_s: float) -> None:
        self.now_s = start_s
        self.history = PowerHistory()
        self._power_w, self._given = power_w, 0
        self.sleep(0.0)

    def sleep(self, seconds: float) -> None:
        """Advances the time, and adds the new readings to the trace."""
        self.now_s += seconds
        last = min(round(self.now_s / BLOCK_S), self._power_w.size)
        blocks = np.arange(self._given, last)
        blocks = blocks[np.isfinite(self._power_w[blocks])]
        self.history.add(blocks * BLOCK_NS, self._power_w[blocks])
        self._given = last

    def settle(self, rest: Rest) -> tuple[Notice | None, float]:
        """Runs settle; returns its result and the time at which it ended [s]."""
        waiting = Settling(lambda: 0, self.history, LIMIT_S, check=lambda: None, show=lambda *seconds: None)
        with (
            mock.patch.object(settling.time, "monotonic", lambda: self.now_s),
            mock.patch.object(settling.time, "sleep", self.sleep),
        ):
            return waiting.wait(rest, 0, synced=True), self.now_s


def trial(kind: str, idle_s: float, tail_w: float, seed: int) -> tuple[bool, bool, bool]:
    """Runs one trial; returns (missed a tail, ended with a fault, withheld figures)."""
    rng = np.random.default_rng(seed)
    ended_s = idle_s + RUN_S
    at_s = np.arange(round((ended_s + 3 * LIMIT_S) / BLOCK_S)) * BLOCK_S
    power_w = BOARDS[kind](rng, at_s, idle_s)
    power_w = power_w + np.where((at_s >= idle_s) & (at_s < ended_s), 1.0, 0.0)
    power_w = power_w + np.where((at_s >= ended_s) & (at_s < ended_s + TAIL_LASTS_S), tail_w, 0.0)
    trace = GrowingTrace(power_w, ended_s)
    lead_in_ns, idle_ns = round(min(idle_s / 3, 10.0) * 1e9), round(idle_s * 1e9)
    rest = Rest.of(trace.history, lead_in_ns, idle_ns)
    if rest is None:
        raise ValueError(f"an idle phase of {idle_s} s is too short to find the power at rest")
    unsettled, now_s = trace.settle(rest)
    missed = tail_w > 0 and unsettled is None and now_s < ended_s + TAIL_LASTS_S
    return missed, unsettled is not None, unsettled is not None and bool(unsettled.withholds)


def main() -> None:
    """Prints one row for each board and idle length, in percent of the trials."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=400, metavar="N", help="trials of each cell (default: 400)")
    parser.add_argument("--tails-mw", type=float, nargs="+", default=[5, 10, 20, 40, 66], metavar="MW")
    options = parser.parse_args()
    print(f"SIMULATED, {options.trials} trials a cell, idle {IDLE_W} W, in percent")
    print("| board | idle [s] | reported | refused |" + "".join(f" missed {mw:g} mW |" for mw in options.tails_mw))
    for kind in BOARDS:
        for idle_s in (2.0, 3.0, 30.0, 60.0):
            quiet = [trial(kind, idle_s, 0.0, seed) for seed in range(options.trials)]
            cells = [np.mean([one[1] for one in quiet]), np.mean([one[2] for one in quiet])]
            for mw in options.tails_mw:
                trials = [trial(kind, idle_s, 1e-3 * mw, 10_000 + seed) for seed in range(options.trials)]
                cells.append(np.mean([one[0] for one in trials]))
            print(
                f"| {kind} | {idle_s:g} | " + " | ".join(f"{100 * share:.1f}" for share in cells) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
