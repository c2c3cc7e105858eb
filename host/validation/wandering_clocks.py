"""How well sync edges align clocks that wander: host/validation/wandering_clocks.py [--trials 100] [--resonators 2000].

SIMULATED clocks and edges (synthetic_clocks.py): oscillators up to 6000 ppm off whose rate drifts, warms up, swings,
walks or steps, over 2 minutes to 1 hour; edges as the loader makes them, with pauses; some lost, some invented, some
late. Each trial matches the edges and compares the map with the truth all along the run, in its pauses and just beyond
its last edge. Then cold starts of which each side misses 30 % of the edges: no map may be off by more than 4 of its own
standard uncertainties at any moment. Then runs with a long pause of the edges, and resonators of a steady rate: none
may be refused, none matched wrongly. Exit 1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from opjoule.clocks.edges import fit_edges, match_edges  # noqa: E402
from opjoule.errors import AlignmentError  # noqa: E402
from synthetic_clocks import LOST, SHAPES, U_DELAY_NS, SyncLine, sync_line  # noqa: E402  # path set above

DURATIONS_S = (120, 600, 1800, 3600)
COVERAGE = (0.93, 0.97)
MOMENTS = 200
BEYOND_S = 10.0
"""So far beyond the first and the last edge the map is asked too."""
PAUSES_S = (60.0, 300.0)
PAUSE_MOMENTS = 9
LOSSY = 0.3
"""Part of the edges that either side misses of a cold start."""
LOSSY_TRIALS = 200
WORST_U = 4.0
LIMITS_US = {"warm-up": 50.0, "linear": 20.0}
"""Greatest error allowed, pauses included, of 30 ppm of warm-up and of 3 ppm an hour."""


@dataclass(frozen=True)
class Trial:
    """One run's outcome."""

    refused: str
    """Why there was no map; empty if there was one."""
    wrong_pairs: int
    """Pairs of edges that are not the same edge."""
    covered: float
    """Part of the moments where the error lies inside the stated interval (k = 2)."""
    greatest_us: float
    """Greatest error during the run, its pauses included, the cable's delay left out."""
    stated_us: float
    """Greatest stated interval (k = 2) during the run."""
    worst_u: float
    """Greatest error over the standard uncertainty stated for it."""
    knots: int
    seconds: float
    """Time that matching and fitting took."""


def trial(seed: int, shape: str, duration_s: float, delay: float = 0.5, lost: float = LOST) -> Trial:
    """Aligns one random run; `delay`: which quantile of its distribution the delay of all edges is."""
    rng = np.random.default_rng(seed)
    delay_ns = NormalDist(0.0, U_DELAY_NS).inv_cdf(delay)
    line = sync_line(rng, shape, duration_s, delay_ns=delay_ns, lost=lost)
    started_s = time.perf_counter()
    try:
        pairs = match_edges(line.board_ns, line.board_level, line.meter_ns, line.meter_level)
        u_ns = np.hypot(line.board_u_ns[pairs.source_index], line.meter_u_ns)
        fitted = fit_edges(pairs, "board", "meter", u_ns, U_DELAY_NS)
    except AlignmentError as error:
        return Trial(str(error), 0, 0.0, np.inf, 0.0, np.inf, 0, time.perf_counter() - started_s)
    seconds = time.perf_counter() - started_s
    first_s, last_s = line.moment_s(pairs.source_ns[[0, -1]])
    moments_s = rng.uniform(first_s - BEYOND_S, last_s + BEYOND_S, MOMENTS)
    board_ns = line.on_board_ns(moments_s)
    error_ns = fitted.to_target(board_ns) - line.on_meter_ns(moments_s)
    u_map_ns = fitted.u_ns(board_ns)
    inside = (moments_s >= first_s) & (moments_s <= last_s)
    return Trial(
        "",
        wrong_pairs(line, pairs.source_index, pairs.target_index),
        float(np.mean(np.abs(error_ns) <= 2 * u_map_ns + 0.5)),
        float(np.abs(error_ns - line.delay_ns)[inside].max()) * 1e-3,
        float(2e-3 * u_map_ns[inside].max()),
        float((np.abs(error_ns) / u_map_ns).max()),
        len(fitted.knots),
        seconds,
    )


def wrong_pairs(line: SyncLine, board_index: np.ndarray, meter_index: np.ndarray) -> int:
    """Pairs of different edges, or of one that was invented."""
    return int(np.sum(line.board_edge[board_index] != line.meter_edge[meter_index]))


def course(shape: str, duration_s: float, trials: int, first_seed: int) -> bool:
    """Runs the trials of one cell, prints its row, and says whether the limits hold."""
    # One delay a run, and all its moments share it: drawn freely, a hundred runs would not tell 95 % from 90.
    courses = [
        trial(first_seed + number, shape, duration_s, (number + 0.5) / trials) for number in range(trials)
    ]
    seen = [one for one in courses if not one.refused]
    covered = float(np.mean([one.covered for one in seen])) if seen else 0.0
    greatest_us = np.array([one.greatest_us for one in seen])
    limit_us = LIMITS_US.get(shape, np.inf)
    wrong, refused = sum(one.wrong_pairs for one in seen), len(courses) - len(seen)
    held = COVERAGE[0] <= covered <= COVERAGE[1] and greatest_us.max() <= limit_us and refused == 0
    print(
        f"| {shape} | {duration_s / 60:g} | {100 * covered:.1f} | {np.median(greatest_us):.1f} | "
        f"{greatest_us.max():.1f} | {np.median([one.stated_us for one in seen]):.1f} | "
        f"{np.median([one.knots for one in seen]):.0f} | {wrong} | {refused} | "
        f"{np.median([one.seconds for one in seen]):.2f} |{'' if held else ' LIMIT BROKEN'}",
        flush=True,
    )
    return bool(held)


def cold_starts(duration_s: float, trials: int, first_seed: int) -> bool:
    """A resonator from cold whose edges are lost on both sides; prints a row, says whether no map was far off."""
    starts = [
        trial(first_seed + number, "cold start", duration_s, (number + 0.5) / trials, LOSSY)
        for number in range(trials)
    ]
    covered = float(np.mean([one.covered for one in starts]))
    worst_u = np.array([one.worst_u for one in starts])
    refused, wrong = sum(bool(one.refused) for one in starts), sum(one.wrong_pairs for one in starts)
    held = covered >= COVERAGE[0] and worst_u.max() <= WORST_U and refused == 0
    print(
        f"| cold start | {duration_s / 60:g} | {100 * covered:.1f} | {np.median(worst_u):.1f} | "
        f"{worst_u.max():.1f} | {np.median([one.stated_us for one in starts]):.1f} | {wrong} | {refused} |"
        f"{'' if held else ' LIMIT BROKEN'}",
        flush=True,
    )
    return bool(held)


def pauses(shape: str, pause_s: float, trials: int, first_seed: int) -> None:
    """Half an hour with one long pause of the edges: how the map does inside it. No limit: nothing is seen there."""
    error_us, u_us = np.empty((trials, PAUSE_MOMENTS)), np.empty((trials, PAUSE_MOMENTS))
    for number in range(trials):
        rng = np.random.default_rng([first_seed, number])
        line = sync_line(rng, shape, 1800.0)
        start_s, made_s = rng.uniform(300, 1200), line.moment_s(line.board_ns)
        kept = (made_s < start_s) | (made_s > start_s + pause_s)
        pairs = match_edges(line.board_ns[kept], line.board_level[kept], line.meter_ns, line.meter_level)
        u_ns = np.hypot(line.board_u_ns[kept][pairs.source_index], line.meter_u_ns)
        fitted = fit_edges(pairs, "board", "meter", u_ns, U_DELAY_NS)
        moments_s = start_s + pause_s * np.linspace(0.1, 0.9, PAUSE_MOMENTS)
        board_ns = line.on_board_ns(moments_s)
        error_us[number] = np.abs(fitted.to_target(board_ns) - line.on_meter_ns(moments_s)) * 1e-3
        u_us[number] = fitted.u_ns(board_ns) * 1e-3
    print(
        f"| {shape} | {pause_s:g} | {100 * np.mean(error_us <= 2 * u_us):.1f} | "
        f"{np.median(error_us.max(axis=1)):.1f} | {error_us.max():.1f} | {np.median(2 * u_us.max(axis=1)):.1f} |",
        flush=True,
    )


def resonators(count: int, first_seed: int) -> bool:
    """Matches the edges of resonators with a steady rate; says whether none was refused or matched wrongly."""
    refused, wrong, pairs = 0, 0, 0
    for number in range(count):
        rng = np.random.default_rng([first_seed, number])
        line = sync_line(rng, "steady", float(rng.choice([10, 30, 120, 600], p=[0.3, 0.3, 0.3, 0.1])))
        try:
            edge_pairs = match_edges(line.board_ns, line.board_level, line.meter_ns, line.meter_level)
        except AlignmentError as error:
            refused += 1
            print(f"refused: resonator {number}: {error}")
            continue
        pairs += edge_pairs.source_ns.size
        # One pair of a lost edge and a late or invented one nearby is left to the fit; a wrong place is many.
        wrong += (
            wrong_pairs(line, edge_pairs.source_index, edge_pairs.target_index)
            > 0.1 * edge_pairs.source_ns.size
        )
    print(f"SIMULATED resonators: {count}, {refused} refused, {wrong} matched wrongly, {pairs} pairs")
    return refused == 0 and wrong == 0


def main() -> int:
    """Every shape over every duration, then the resonators."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=100, help="of each shape and duration")
    parser.add_argument("--resonators", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first trial")
    options = parser.parse_args()
    print(
        "SIMULATED: | shape | min | covered % | greatest us: median | worst | stated | knots | wrong | refused | s |"
    )
    held = [
        course(shape, duration_s, options.trials, options.seed)
        for shape in SHAPES
        if shape not in ("steady", "cold start")
        for duration_s in DURATIONS_S
    ]
    print(
        "SIMULATED: | 30 % lost on both sides | min | covered % | worst error in u: median | of all | stated us | "
        "wrong | refused |"
    )
    held += [
        cold_starts(duration_s, max(2 * options.trials, LOSSY_TRIALS), options.seed)
        for duration_s in DURATIONS_S
    ]
    print("SIMULATED: | shape | pause s | covered % | greatest us in it: median | worst | stated |")
    for shape in SHAPES:
        for pause_s in PAUSES_S:
            pauses(shape, pause_s, options.trials, options.seed)
    held.append(resonators(options.resonators, options.seed))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
