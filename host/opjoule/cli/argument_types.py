"""Types of settings with their limits, on the command line and in files alike."""

import re
from typing import Annotated, Final

from msgspec import Meta

from opjoule.base.settings import written

SEED_MAX: Final = (1 << 31) - 1
"""Largest seed that the loader, the simulators and Python's generators all accept."""
REPEATS_MAX: Final = 10_000
THREADS_MAX: Final = 1024
COUNT_MAX: Final = 10**18
NAME_MAX: Final = 60
"""Greatest length of a compared command's name, which becomes a part of its records' names."""

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX, description="a whole number of at least 0")]
Positive = Annotated[int, Meta(ge=1, le=COUNT_MAX, description="a whole number of at least 1")]
Port = Annotated[int, Meta(ge=0, lt=1 << 16, description="a port from 0 to 65535")]
Seed = Annotated[int, Meta(ge=0, le=SEED_MAX, description=f"a whole number from 0 to {SEED_MAX}")]
Days = Annotated[int, Meta(ge=1, le=36_500, description="a number of days from 1 to 36500")]
RepeatCount = Annotated[int, Meta(ge=1, le=REPEATS_MAX, description=f"a whole number from 1 to {REPEATS_MAX}")]
ThreadCount = Annotated[int, Meta(ge=1, le=THREADS_MAX, description=f"a number of threads from 1 to {THREADS_MAX}")]
Again = Annotated[int, Meta(ge=0, le=9, description="a whole number from 0 to 9")]
Celsius = Annotated[float, Meta(ge=-40, le=85, description="a room's temperature from -40 to 85")]
Seconds = Annotated[float, Meta(ge=0, le=86400, description="a number of seconds from 0 to 86400")]
Share = Annotated[float, Meta(gt=0, le=1, description="a number above 0 and at most 1, for example 0.1")]
Voltage = Annotated[float, Meta(gt=0, le=1000, description="a voltage above 0 and up to 1000 V, for example 5.1")]
Hertz = Annotated[float, Meta(gt=0, le=1e9, description="a number a second above 0, for example 100")]
PpmPerKelvin = Annotated[float, Meta(ge=0, le=5000, description="ppm per kelvin from 0 to 5000")]


def _parts_of_one(text: str) -> float:
    return float(text.removesuffix("%")) / 100


Percent = Annotated[float, written(_parts_of_one, "a percentage above 0 and below 100, for example 3%", gt=0, lt=1)]
"""A part of 1, written in percent."""


def _span_s(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)", text.strip())
    if not match:
        raise ValueError
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[match[2]]


TimeSpan = Annotated[float, written(_span_s, "a length of time, for example 90min, 2h or 3d", gt=0)]
"""A length of time [s], written with its unit."""


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > NAME_MAX:
        raise ValueError
    return text.strip()


CommandName = Annotated[str, written(_name, f"a name of 1 to {NAME_MAX} printable characters")]
"""Name of a compared command: printable, on one line."""
