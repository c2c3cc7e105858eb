"""Equipment and results of a commissioning step: connections, the meter, the board, a second meter, the verdict."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path
from typing import Self

from opjoule.base.errors import DeviceFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.bench.commissioning.dialogue import Parts
from opjoule.bench.commissioning.running import DeskRecording, Running
from opjoule.boards.board import Board
from opjoule.boards.profiles import Profile
from opjoule.runs.measuring.open_meter import OpenMeter


class StepOutcome(StrEnum):
    """How a step ended."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CheckedFigure:
    """One figure of a step, and its limit in words."""

    value: float
    unit: str
    limit: str = ""


class Defects(list[Notice]):
    """The defects that a step finds."""

    def add(self, line: str, remedy: str) -> None:
        """Adds one defect."""
        self.append(Notice(NoticeKind.MEND, line, remedy))


@dataclass(frozen=True)
class Picture:
    """Points of a step's drawing, shape (n,) each, and a straight line through them if `gain` is given."""

    x: Sequence[float]
    y: Sequence[float]
    x_words: str
    y_words: str
    gain: float | None = None
    offset: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Result of one step."""

    outcome: StepOutcome
    words: str
    """One line that says what was found."""
    advice: str = ""
    figures: Mapping[str, CheckedFigure] = field(default_factory=dict)
    picture: Picture | None = None

    @classmethod
    def of(
        cls,
        words: str,
        faults: Sequence[Notice],
        figures: Mapping[str, CheckedFigure],
        picture: Picture | None = None,
        *,
        broken: StepOutcome = StepOutcome.FAILED,
    ) -> Self:
        """A passed verdict if there are no faults; else one whose words begin with the faults.

        Args:
            broken: the outcome if there are faults.
        """
        if not faults:
            return cls(StepOutcome.PASSED, words, "", figures, picture)
        said = "; ".join([*(fault.line for fault in faults), words])
        advice = "; ".join(dict.fromkeys(fault.remedy for fault in faults if fault.remedy))
        return cls(broken, said, advice, figures, picture)

    @classmethod
    def failed(cls, words: str, advice: str) -> Self:
        """Verdict on a step that could not be carried out."""
        return cls(StepOutcome.FAILED, words, advice)

    @classmethod
    def skipped(cls, why: str) -> Self:
        """Verdict on a step that was left out, with the reason."""
        return cls(StepOutcome.SKIPPED, why)


@dataclass(frozen=True)
class DeskPace:
    """How long the steps record [s], and how much they write."""

    zero_s: float = 60.0
    fuse_s: float = 6.0
    load_s: float = 10.0
    hold_s: float = 180.0
    cool_s: float = 20.0
    """Time for a hot shunt to cool before a reading counts; some of its time constants."""
    sync_s: float = 120.0
    quiet_s: float = 60.0
    levels: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8)
    patterns: tuple[int, ...] = (1, 2)
    """Numbers of the load signatures before and after the pulses."""
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
"""The same steps with the same limits but shorter, since nothing in the simulated rig drifts for minutes."""


class Setup(Enum):
    """Wiring to set up, as an instruction to the person at the desk."""

    UNPLUGGED = (
        "Shut the board down and unplug it from the sensor. Leave the supply on, with nothing connected after "
        "VIN\N{MINUS SIGN}."
    )
    FUSE_PULLED = (
        "Plug the board in again, with everything that is ever plugged into it (network, media, sync line, HDMI, "
        "debug adapter), and take out the supply's fuse."
    )
    LOAD_A = (
        "Unplug the board and put the fuse back. Connect the known resistor (load A) after VIN\N{MINUS SIGN}, in the "
        "board's place. It gets hot."
    )
    LOAD_B = "Remove load A and connect a second resistor (load B: about 3.3 ohm, 10 W) in its place."
    BOTH = "Connect load A in parallel with load B."
    BOTH_HOT = "Leave both connected while they warm up."
    A_HOT = "Remove load B; leave load A connected."
    B_HOT = "Remove load A and connect load B in its place, quickly."
    BOARD = "Remove every load, plug the board in with all it needs to work, and wait until it has booted."
    SECOND_METER = "Put the second meter in series with the rig's sensor, and wait until the board has booted."


@dataclass(frozen=True)
class OpenDesk:
    """Equipment that is open for one step."""

    set_up: Callable[[Setup], None]
    """Returns when the wiring is set up, by a person or in the simulation. Raises: Skipped, Stopped."""
    folder: Path
    """Folder for the step's recordings."""
    pace: DeskPace
    parts: Parts
    profile: Profile
    zero_a: float | None = None
    """Mean reading without a load [A], from the step `zero`; None if that has no result."""
    rig: OpenMeter | None = None
    open_board: Callable[[], AbstractContextManager[Board]] | None = None
    """Connects to the board, which must be on; None: the step has no board."""
    second: OpenMeter | None = None
    record: Callable[[Path, float], DeskRecording] | None = None
    """Records the meter alone: (folder, seconds of its clock) -> recording; None: as `recording` does."""

    def recording(self, name: str, board: Board | None = None) -> Running:
        """A recording of the rig's meter; a `with` block begins it."""
        assert self.rig, "the step has no meter"
        return Running(self.rig, self.folder / name, board)

    def take(self, name: str, seconds: float) -> DeskRecording:
        """Records the meter alone for this many seconds of its clock. Raises: MeterFault."""
        if self.record:
            return self.record(self.folder / name, seconds)
        with self.recording(name) as running:
            running.wait(seconds)
        return running.recorded()

    @contextmanager
    def prepared(self) -> Iterator[Board]:
        """The board in its measuring state with its probe running; restored at the end of the block.

        Raises: DeviceFault, LinkFault: the board cannot be reached, or a change was refused.
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
