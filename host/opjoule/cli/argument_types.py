"""Types of values on the command line: each reads a text, or says what is wrong with it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

LONGEST_NUMBER: Final = 19
"""Digits; Python refuses to read a number of many thousands."""
SEED_MAX: Final = (1 << 31) - 1
"""What the loader, the simulators and Python's generators all take."""
REPEATS_MAX: Final = 10_000
THREADS_MAX: Final = 1024


def whole_between(least: int, most: int, words: str) -> Callable[[str], int]:
    """A type: a whole number in a range, which `words` name."""

    def read(text: str) -> int:
        plain = text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
        if not (plain and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"'{text}' is not {words}")
        return int(text)

    return read


positive = whole_between(1, 10**18, "a whole number of at least 1")
seed = whole_between(0, SEED_MAX, f"a seed: a whole number from 0 to {SEED_MAX}")
days = whole_between(1, 36_500, "a number of days from 1 to 36500")
repeat_count = whole_between(1, REPEATS_MAX, f"a number of repeats from 1 to {REPEATS_MAX}")
thread_count = whole_between(1, THREADS_MAX, f"a number of threads from 1 to {THREADS_MAX}")


def count(text: str) -> int:
    """A whole number, 0 included."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 0")
    return int(text)


def port(text: str) -> int:
    """A port from 0 (any that is free) to 65535."""
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port from 0 to 65535")
    return int(text)


def percent(text: str) -> float:
    """A share from per cent: 0.03 from "3%" or "3"."""
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a percentage above 0 and below 100, for example 3%"
        )
    return value


def voltage(text: str) -> float:
    """A supply voltage above 0 and up to 1000 [V]."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a voltage above 0 and up to 1000 V, for example 5.1"
        )
    return value


def number_between(text: str, least: float, most: float, words: str) -> float:
    """A number in a range, which `words` name."""
    try:
        value = float(text)
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"'{text}' is not {words}")
    return value


def share(text: str) -> float:
    """A part of the whole, above 0 and at most 1."""
    value = number_between(text, 0.0, 1.0, "a number above 0 and at most 1, for example 0.1")
    if value == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not above 0")
    return value


def celsius(text: str) -> float:
    """Temperature of a room."""
    return number_between(text, -40.0, 85.0, "a room's temperature from -40 to 85")


def directory(text: str) -> Path:
    """A name for a directory or file; an empty one would mean the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: give a name, for example runs/bench")
    return Path(text)


def time_span(text: str) -> float:
    """A length of time with its unit [s]: 40s, 90min, 2h, 3d."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)", text.strip())
    if not match or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a length of time: for example 90min, 2h or 3d")
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[match[2]]


def seconds(text: str) -> float:
    """A length of at most a day [s]."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0 to 86400")
    return value
