"""Profiles of current for the rig simulator, and edges of the sync line."""

import random

SECONDS = 5.0
# Lengths of 1 s and more, in no simple relation to the profiles' periods.
EDGES_S = [0.217 + 1.093 * index for index in range(5)]


def constant():
    return [(0.0, 0.6)]


def square(period_s):
    """1.1 and 0.3 A alternately."""
    count = round(SECONDS / period_s)
    return [row for n in range(count) for row in ((n * period_s, 1.1), ((n + 0.5) * period_s, 0.3))]


def ramp():
    return [(step * 1e-3, 0.2 + 1.2 * step * 1e-3 / SECONDS) for step in range(round(SECONDS * 1000))]


def bursts():
    """5 to 50 ms of 0.8 to 1.5 A, 20 to 200 ms apart, over 0.4 A."""
    chance = random.Random(3)
    rows, time_s = [(0.0, 0.4)], 0.0
    while time_s < SECONDS - 0.3:
        time_s += chance.uniform(0.02, 0.2)
        length_s = chance.uniform(0.005, 0.05)
        rows += [(time_s, chance.uniform(0.8, 1.5)), (time_s + length_s, 0.4)]
        time_s += length_s
    return rows


PROFILES = {
    "constant": constant,
    "square 1 ms": lambda: square(1e-3),
    "square 10 ms": lambda: square(10e-3),
    "square 100 ms": lambda: square(0.1),
    "square 1 s": lambda: square(1.0),
    "ramp": ramp,
    "bursts": bursts,
}
