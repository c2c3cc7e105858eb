"""Types of values on the command line: each parses a text or says what is wrong with it."""

import argparse
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Final

_WHOLE: Final = re.compile(r"\d{1,19}(\.\d{1,19})?(e\+?\d{1,2})?", re.ASCII | re.IGNORECASE)
"""A number as it may be written: 1000000, 1e6, 2.5e6. It is short: Python refuses thousands of digits."""
SEED_MAX: Final = (1 << 31) - 1
"""Largest seed that the loader, the simulators and Python's generators all accept."""
REPEATS_MAX: Final = 10_000
THREADS_MAX: Final = 1024


def whole_between(least: int, most: int, words: str) -> Callable[[str], int]:
    """Type of whole numbers in a range, 1e6 is one; `words` describe the range in the error message."""

    def read(text: str) -> int:
        value = Decimal(text) if _WHOLE.fullmatch(text) else Decimal(-1)
        if not least <= value <= most or value % 1:
            raise argparse.ArgumentTypeError(f"'{text}' is not {words}")
        return int(value)

    return read


count = whole_between(0, 10**18, "a whole number of at least 0")
port = whole_between(0, (1 << 16) - 1, "a port from 0 to 65535")
positive = whole_between(1, 10**18, "a whole number of at least 1")
seed = whole_between(0, SEED_MAX, f"a seed: a whole number from 0 to {SEED_MAX}")
days = whole_between(1, 36_500, "a number of days from 1 to 36500")
repeat_count = whole_between(1, REPEATS_MAX, f"a number of repeats from 1 to {REPEATS_MAX}")
thread_count = whole_between(1, THREADS_MAX, f"a number of threads from 1 to {THREADS_MAX}")


def number_between(
    least: float, most: float, words: str, *, above: bool = False, ending: str = "", parts: float = 1.0
) -> Callable[[str], float]:
    """Type of numbers in a range; `words` describe the range in the error message.

    Args:
        above: `least` itself is not in the range.
        ending: optional suffix of the number.
        parts: divisor of the value.
    """

    def read(text: str) -> float:
        try:
            value = float(text.removesuffix(ending))
        except ValueError:
            value = math.nan
        if not least <= value <= most or (above and value == least):
            raise argparse.ArgumentTypeError(f"'{text}' is not {words}")
        return value / parts

    return read


celsius = number_between(-40.0, 85.0, "a room's temperature from -40 to 85")
seconds = number_between(0.0, 86400.0, "a number of seconds from 0 to 86400")
share = number_between(0.0, 1.0, "a number above 0 and at most 1, for example 0.1", above=True)
voltage = number_between(0.0, 1000.0, "a voltage above 0 and up to 1000 V, for example 5.1", above=True)
hertz = number_between(0.0, 1e9, "a number a second above 0, for example 100", above=True)
percent = number_between(
    0.0,
    math.nextafter(100.0, 0.0),
    "a percentage above 0 and below 100, for example 3%",
    above=True,
    ending="%",
    parts=100.0,
)


def directory(text: str) -> Path:
    """Name of a directory or file. An empty name is refused, since it would mean the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty: give a name, for example runs/bench")
    return Path(text)


def time_span(text: str) -> float:
    """A length of time with its unit [s]: 40s, 90min, 2h, 3d."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)", text.strip())
    if not match or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a length of time: for example 90min, 2h or 3d")
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[match[2]]


NAME_MAX: Final = 60
"""Greatest length of a compared command's name, which becomes a part of its records' names."""


def command_name(text: str) -> str:
    """Name of a compared command: printable, on one line."""
    if not text.strip() or not text.isprintable() or len(text) > NAME_MAX:
        raise argparse.ArgumentTypeError(f"{text[:NAME_MAX]!r}: a name has 1 to {NAME_MAX} printable characters")
    return text.strip()
