"""A step's equipment and results: connections, meters, board, a recording of both, and the verdict from it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa

from opjoule.base.errors import BadInput, DeviceFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.terminal import Prompts, refusing
from opjoule.boards.board import Board
from opjoule.boards.profiles import Profile
from opjoule.clocks.exchanges import BOARD_EXCHANGES, METER_EXCHANGES, Exchange, read_exchanges
from opjoule.energy.calibration.reference import Accuracy
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import SQRT3, ErrorBounds
from opjoule.energy.operations.board_files import BoardEdges, load_changes, read_events, read_system, sync_edges
from opjoule.energy.operations.tables import EVENTS
from opjoule.energy.trace.journal import SyncEdges, further_numbers, read_edges, read_trace
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.meters.capture import CaptureSummary
from opjoule.meters.registry import address_of
from opjoule.runs.measuring.open_meter import OpenMeter, Recording


@dataclass(frozen=True)
class DeskRecording:
    """Data of meter and board from one recording."""

    trace: PowerTrace
    """Trace as it was read, without a calibration."""
    bounds: ErrorBounds
    """Error bounds of the sensor, with its calibration if there is one."""
    captured: CaptureSummary = field(default_factory=CaptureSummary)
    edges: SyncEdges = field(
        default_factory=lambda: SyncEdges(np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64))
    )
    meter_exchanges: Sequence[Exchange] = ()
    board_exchanges: Sequence[Exchange] = ()
    events: Mapping[str, pa.Table] = field(default_factory=dict)
    """Name of the probe's files -> its events, in order of time."""
    system: Mapping[str, pa.Table] = field(default_factory=dict)
    """Name of the probe's files -> its samples of the board."""
    other_sensors: Mapping[int, PowerTrace] = field(default_factory=dict)
    """Number of an additional sensor, from 1 -> its trace."""

    @cached_property
    def corrected(self) -> PowerTrace:
        """The trace with the sensor's calibration applied, if it has one."""
        return self.bounds.calibration.apply(self.trace) if self.bounds.calibration else self.trace

    @cached_property
    def cells(self) -> Cells:
        """Cells of the corrected trace."""
        return Cells.of(self.corrected)

    @property
    def edges_made(self) -> BoardEdges:
        """Sync edges that the board made, in order of time."""
        tables = list(self.events.values())
        events = pa.concat_tables(tables).sort_by("board_ns") if tables else EVENTS.empty_table()
        return sync_edges(events)

    def load_changes(self) -> list[BoardEdges]:
        """Changes of each load pattern that the board played, by file, in order of time."""
        changes = [load_changes(table) for table in self.events.values()]
        return sorted(
            (change for change in changes if change.board_ns.size), key=lambda change: int(change.board_ns[0])
        )


def meter_words(meter: OpenMeter) -> dict[str, str]:
    """The meter's own statements, for the certificate."""
    identity, bounds = meter.identity, meter.bounds
    sensors = ", ".join(f"{sensor.model} at 0x{sensor.address:02x}" for sensor in identity.sensors)
    facts = {
        "board": identity.board,
        "firmware": identity.firmware_version,
        "serial_number": identity.serial_number,
        "sensors": sensors,
        "sensor_id": bounds.sensor_id,
        "calibration": bounds.calibration.identity if bounds.calibration else "",
    }
    return {key: value for key, value in facts.items() if value}


class Running(Recording):
    """Records a meter together with a prepared board; `recorded` returns the data."""

    def __init__(self, opened: OpenMeter, folder: Path, board: Board | None = None) -> None:
        """Creates the files. `board`: for round trips and the probe's files; None: no board."""
        super().__init__(folder, opened.meter, opened.name, board.probe.clock_exchange if board else None)
        self._bounds, self._board = opened.bounds, board
        self._begun: list[str] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._board:  # without a board only the meter's clock counts
                self.catch_up()
                if self._begun:
                    self._board.probe.begin_files("after")
                    self._fetch(self._board, self._begun)
        finally:
            super().__exit__(kind, error, trace)

    def catch_up_to(self, board_ns: int) -> None:
        """Waits until the board's clock, as seen by the host, has passed `board_ns`."""
        assert self._board
        while (left_ns := board_ns - self._board.probe.clock_exchange().far_received_ns) > 0:
            self._check()
            time.sleep(min(left_ns * 1e-9, 0.1))

    def begin_files(self, name: str) -> None:
        """Sends the probe's events and samples to files of this name from now on."""
        assert self._board
        self._board.probe.begin_files(name)
        self._begun.append(name)

    def end_probe(self) -> None:
        """Ends the board's probe and fetches its files; its sync line and load are at rest from then on."""
        assert self._board
        self._fetch(self._board, self._begun[:-1])
        if self._watch:
            self._watch.stop()
        self._board.end_probe(self.folder / "raw")
        self._begun.clear()

    def recorded(self) -> DeskRecording:
        """The recorded data, once the recording has ended. Raises: RecordFault: a file cannot be read."""
        raw, folder = self.folder / "raw", self.folder
        events, systems = sorted(raw.glob("*.events.jsonl")), sorted(raw.glob("*.system.csv"))
        return DeskRecording(
            trace=read_trace(folder),
            bounds=self._bounds,
            captured=self.capture.summary,
            edges=read_edges(folder),
            meter_exchanges=read_exchanges(raw / METER_EXCHANGES),
            board_exchanges=read_exchanges(raw / BOARD_EXCHANGES),
            events={path.name.removesuffix(".events.jsonl"): read_events(path) for path in events},
            system={
                path.name.removesuffix(".system.csv"): read_system(path) for path in systems if path.stat().st_size
            },
            other_sensors={number: read_trace(folder, number) for number in further_numbers(folder)},
        )

    def _fetch(self, board: Board, names: Sequence[str]) -> None:
        """Fetches complete files of the probe."""
        for name in names:
            board.runner.fetch_probe_files(name, self.folder / "raw")


SKIP: Final = "skip"
HOW: Final = "Enter continues, 'skip WHY' leaves the step out, 'stop' ends here"
SUPPLY_SIDE: Final = "supply"
BOARD_SIDE: Final = "board"
BETWEEN_SHARE_MAX: Final = 0.2
"""Relative error bound of the stated resistance between two meters, which includes plugs."""


class Skipped(Exception):
    """Raised when the person leaves a step out; `str()` is the reason."""


@dataclass(frozen=True)
class DeskDialogue(Prompts):
    """Questions to the person at the desk, who may leave a step out or end the procedure; finished steps are kept."""

    stops: tuple[str, ...] = ("stop", "q", "quit")

    def ready(self, words: str) -> None:
        """Asks the person to do something and waits until it is done. Raises: Skipped, Stopped: the person said so."""
        wrong = ""
        while True:
            answer = self.answer(f"{wrong}{words}\n  [{HOW}] ")
            if not answer:
                return
            word, _, why = answer.partition(" ")
            if word.lower() == SKIP and why.strip():
                raise Skipped(why.strip())
            wrong = (
                "  Give a reason, for example: skip no such resistor here\n"
                if word.lower() == SKIP
                else f"  '{answer}' is none of these.\n"
            )


@dataclass(frozen=True)
class Parts:
    """Parts of the rig as the person at the desk names them; an empty text means a missing or unknown part."""

    supply: str = ""
    sensor: str = ""
    shunt: str = ""
    resistor: str = ""
    """The known resistor: "10,0.1%"."""
    resistor_certificate: str = ""
    second_meter: str = ""
    """Name of the meter, as in rig.toml."""
    second_certificate: str = ""
    second_side: str = SUPPLY_SIDE
    """On which side of the rig's shunt the second meter reads the voltage."""
    between_ohm: str = "0.05"
    """Resistance between the two places where the meters read the voltage, without the rig's shunt."""

    @classmethod
    def asked(cls, dialogue: Prompts) -> Self:
        """Asks for each part. Raises: Stopped."""
        answers: dict[str, str] = {}
        for key, question, default, check in _QUESTIONS:
            if key in _OF_SECOND and not answers.get("second_meter"):
                continue
            if key == "resistor_certificate" and not answers.get("resistor"):
                continue
            answers[key] = dialogue.text(question, check, default)
        return cls(**answers)


def known_resistor(text: str) -> tuple[float, float]:
    """Resistance [ohm] and relative error bound from "10,0.1%". Raises: BadInput: the text has another form."""
    ohm_text, _, accuracy = text.partition(",")
    try:
        ohm = float(ohm_text)
        if not 0.1 <= ohm <= 1000:
            raise ValueError
        known = Accuracy.of(accuracy, "ohm")
    except (ValueError, BadInput):
        raise BadInput(f"'{text}': write OHM,ACCURACY, from 0.1 to 1000 ohm, for example 10,0.1%") from None
    return ohm, SQRT3 * (known.relative + known.absolute / ohm)


_OF_SECOND: Final = ("second_certificate", "second_side", "between_ohm")
_QUESTIONS: Final[tuple[tuple[str, str, str, Callable[[str], object]], ...]] = (
    ("supply", "Supply: model, serial number", "", str),
    ("sensor", "Sensor breakout and controller: model, marking", "", str),
    ("shunt", "Shunt: marking, tolerance, temperature coefficient, certificate", "", str),
    (
        "resistor",
        "Known resistor: OHM,ACCURACY, for example 10,0.1% (Enter: there is none)",
        "",
        lambda answer: answer and known_resistor(answer),
    ),
    ("resistor_certificate", "Its serial number and certificate", "", str),
    (
        "second_meter",
        "Second meter in series: KIND:PLACE (Enter: there is none)",
        "",
        lambda answer: answer and address_of(answer),
    ),
    ("second_certificate", "Its serial number and certificate", "", str),
    (
        "second_side",
        "Side on which it reads the voltage: supply or board",
        SUPPLY_SIDE,
        refusing((SUPPLY_SIDE, BOARD_SIDE).__contains__, f"neither {SUPPLY_SIDE} nor {BOARD_SIDE}"),
    ),
    (
        "between_ohm",
        "Resistance between the two places, without the shunt [ohm]",
        "0.05",
        refusing(lambda answer: 0 <= float(answer) <= 5, "not a resistance from 0 to 5 ohm"),
    ),
)


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
