"""The twelve steps of the commissioning, in order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from opjoule.bench.commissioning import known_loads, load_course, medium_bytes, second_meter, sync_line
from opjoule.bench.commissioning.desk import OpenDesk, Verdict

Kept = dict[str, Any]
"""Recordings that two steps share, by name; kept as long as the procedure runs."""


@dataclass(frozen=True)
class DeskStep:
    """One step."""

    key: str
    title: str
    measures: str
    """The measured quantity and its limit, in words."""
    carry_out: Callable[[OpenDesk, Kept, str], Verdict]
    """Makes the recording and judges it; takes the desk, the shared recordings and the medium's name."""
    board: bool = False
    """Whether the step needs the board's programs."""
    second: bool = False
    """Whether the step needs the second meter."""


def _shared(kept: Kept, name: str, take: Callable[[OpenDesk], Any], desk: OpenDesk) -> Any:
    if name not in kept:
        kept[name] = take(desk)
    return kept[name]


STEPS: Final = (
    DeskStep(
        "zero",
        "Zero without a load",
        "current with nothing connected: within the data sheet's offset, drift below 0.3 mA in 60 s",
        lambda desk, kept, _: known_loads.zero(desk),
    ),
    DeskStep(
        "back-feed",
        "Nothing feeds the board from elsewhere",
        "voltage with the supply's fuse out: below 0.5 V within 5 s",
        lambda desk, kept, _: known_loads.back_feed(desk),
    ),
    DeskStep(
        "resistor",
        "A known resistor",
        "current against V / R: within the combined bounds",
        lambda desk, kept, _: known_loads.resistor(desk),
    ),
    DeskStep(
        "additivity",
        "Two loads add up, cold and warm",
        "I(AB) - I(A) - I(B): below 0.2 %",
        lambda desk, kept, _: known_loads.additivity(desk),
    ),
    DeskStep(
        "sync",
        "Every sync pulse arrives, and no other",
        "edges of the sync line: all of them, no others, rms below 20 us",
        lambda desk, kept, _: sync_line.judge_sync(_shared(kept, "sync", sync_line.take_sync, desk)),
        board=True,
    ),
    DeskStep(
        "clocks",
        "The clocks",
        "resonator below 8,000 ppm, board below 200 ppm, sync line and load signature agree",
        lambda desk, kept, _: sync_line.judge_clocks(_shared(kept, "sync", sync_line.take_sync, desk)),
        board=True,
    ),
    DeskStep(
        "load-steps",
        "Load steps up and down",
        "power rises with the load, repeats within 0.5 %; cable at most 0.2 ohm",
        lambda desk, kept, _: load_course.levels(desk),
        board=True,
    ),
    DeskStep(
        "full-load",
        "Full load and medium",
        "least voltage 0.1 V above the board's limit, no flag, nothing clipped",
        lambda desk, kept, _: load_course.judge_full(*load_course.take_full(desk), desk.profile),
        board=True,
    ),
    DeskStep(
        "second-meter",
        "A second meter in series",
        "energies agree within both intervals, losses between them included",
        lambda desk, kept, _: second_meter.second_meter(desk),
        second=True,
        board=True,
    ),
    DeskStep(
        "medium",
        "Bytes reach the medium",
        "256 MiB synced: the path's device, the kernel's bytes within 2 %, the medium's sensor moves only then",
        lambda desk, kept, medium: medium_bytes.judge_medium(medium_bytes.take_medium(desk, medium)),
        board=True,
    ),
    DeskStep(
        "errors",
        "Ten minutes without an error",
        "no I2C error, no missed conversion, no bad frame, no reset",
        lambda desk, kept, _: load_course.judge_errors(_shared(kept, "long", load_course.take_long, desk)),
    ),
    DeskStep(
        "idle",
        "Idle power",
        "inside the board's plausible range: a warning only",
        lambda desk, kept, _: load_course.judge_idle(_shared(kept, "long", load_course.take_long, desk), desk.profile),
    ),
)


def step_called(key: str) -> DeskStep:
    """The step of this key."""
    return next(step for step in STEPS if step.key == key)
