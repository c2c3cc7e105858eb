"""What a step of the commissioning works with: what is connected, the meter, the board, a second meter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path

from opjoule.commissioning.dialogue import Parts
from opjoule.commissioning.running import DeskRecording, OpenMeter, Running
from opjoule.devices.board import Board
from opjoule.devices.profiles import Profile
from opjoule.errors import DeviceFault


class StepOutcome(StrEnum):
    """How a step ended."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CheckedFigure:
    """One figure of a step and the limit that it is held against, in words."""

    value: float
    unit: str
    limit: str = ""


@dataclass(frozen=True)
class Defect:
    """Something that is not as it should be, and what to do about it."""

    words: str
    advice: str


class Defects(list[Defect]):
    """What a step finds wrong."""

    def add(self, words: str, advice: str) -> None:
        """Notes one defect."""
        self.append(Defect(words, advice))


@dataclass(frozen=True)
class Picture:
    """Points that a step's drawing shows, shape (n,) each, with a straight line through them where there is one."""

    x: Sequence[float]
    y: Sequence[float]
    x_words: str
    y_words: str
    gain: float | None = None
    offset: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What one step says."""

    outcome: StepOutcome
    words: str
    """One line: what was found."""
    advice: str = ""
    figures: Mapping[str, CheckedFigure] = field(default_factory=dict)
    picture: Picture | None = None

    @classmethod
    def of(
        cls,
        words: str,
        faults: Sequence[Defect],
        figures: Mapping[str, CheckedFigure],
        picture: Picture | None = None,
        *,
        broken: StepOutcome = StepOutcome.FAILED,
    ) -> Verdict:
        """Passed without a fault; else the faults' words before what was found.

        Args:
            broken: the outcome with a fault.
        """
        if not faults:
            return cls(StepOutcome.PASSED, words, "", figures, picture)
        said = "; ".join([*(fault.words for fault in faults), words])
        advice = "; ".join(dict.fromkeys(fault.advice for fault in faults if fault.advice))
        return cls(broken, said, advice, figures, picture)

    @classmethod
    def failed(cls, words: str, advice: str) -> Verdict:
        """A step that could not be carried out."""
        return cls(StepOutcome.FAILED, words, advice)

    @classmethod
    def skipped(cls, why: str) -> Verdict:
        """A step that was left out, and why."""
        return cls(StepOutcome.SKIPPED, why)


@dataclass(frozen=True)
class DeskPace:
    """How long a step records [s], and how much it writes."""

    zero_s: float = 60.0
    fuse_s: float = 6.0
    load_s: float = 10.0
    hold_s: float = 180.0
    cool_s: float = 20.0
    """From a hot shunt to a cooler one, before a reading counts: some time constants of it."""
    sync_s: float = 120.0
    quiet_s: float = 60.0
    levels: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8)
    patterns: tuple[int, ...] = (1, 2)
    """Numbers of the load signatures before and behind the pulses."""
    level_s: float = 3.0
    full_s: float = 10.0
    series_levels: tuple[int, ...] = (0, 2, 4, 6, 8)
    written_bytes: int = 256 << 20
    long_s: float = 600.0


SIMULATED_PACE = DeskPace(
    zero_s=20.0,
    load_s=5.0,
    hold_s=16.0,
    cool_s=12.0,
    sync_s=15.0,
    quiet_s=4.0,
    levels=(0, 2, 4, 6, 8),
    level_s=1.6,
    full_s=4.0,
    long_s=30.0,
)
"""The same steps with the same limits, shortened: nothing of the simulated rig drifts for minutes."""


class Setup(Enum):
    """Something to connect, in words."""

    UNPLUGGED = (
        "Shut the board down and unplug it from the sensor: supply on, nothing behind VIN\N{MINUS SIGN}."
    )
    FUSE_PULLED = (
        "Plug the board in again, with everything that is ever plugged into it (network, media, sync line, HDMI, "
        "debug adapter), and take the supply's fuse out."
    )
    LOAD_A = (
        "Unplug the board, put the fuse back. Connect the known resistor (load A) behind VIN\N{MINUS SIGN}, in the "
        "board's place. It gets hot."
    )
    LOAD_B = "Take load A off, connect a second resistor (load B: about 3.3 ohm, 10 W) in its place."
    BOTH = "Connect load A beside load B, in parallel."
    BOTH_HOT = "Leave both connected while they warm up."
    A_HOT = "Take load B off; load A stays."
    B_HOT = "Take load A off and connect load B in its place, quickly."
    BOARD = "Take every load off, plug the board in with all it needs to work, and wait until it has booted."
    SECOND_METER = (
        "Put the second meter in series with the rig's sensor, and wait until the board has booted."
    )


@dataclass(frozen=True)
class OpenDesk:
    """What is open for one step."""

    set_up: Callable[[Setup], None]
    """Returns when something is connected, by a person or in the simulation. Raises: Skipped, Stopped."""
    folder: Path
    """For the step's recordings."""
    pace: DeskPace
    parts: Parts
    profile: Profile
    zero_a: float | None = None
    """Mean reading without a load, if the step `zero` has told it [A]."""
    rig: OpenMeter | None = None
    open_board: Callable[[], AbstractContextManager[Board]] | None = None
    """Connects to the board, which is on by then; None: the step has none."""
    second: OpenMeter | None = None
    record: Callable[[Path, float], DeskRecording] | None = None
    """Records the meter alone, into a folder, for so many seconds of its clock; None: as `recording` does."""

    def recording(self, name: str, board: Board | None = None) -> Running:
        """A recording of the rig's meter, to be begun by a `with` block."""
        assert self.rig, "the step has no meter"
        return Running(self.rig.meter, self.rig.bounds, self.folder / name, board)

    def take(self, name: str, seconds: float) -> DeskRecording:
        """The meter alone, for so many seconds of its clock. Raises: MeterFault."""
        if self.record:
            return self.record(self.folder / name, seconds)
        with self.recording(name) as running:
            running.wait(seconds)
        return running.recorded()

    @contextmanager
    def prepared(self) -> Iterator[Board]:
        """The board in its measuring state, its probe running; put back at the end.

        Raises: DeviceFault, LinkFault: it is out of reach, or a change was refused.
        """
        assert self.open_board, "the step has no board"
        with self.open_board() as board:
            board.prepare()
            try:
                yield board
            finally:
                left = board.restore()
            if left:
                raise DeviceFault("; ".join(left))
