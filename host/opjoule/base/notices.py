"""Notices: what a reader must know before trusting a figure, as one typed value from where it arises to every output.

Programs decide by the kind of a notice, never by its words. A new kind is one row of `NoticeKind`, and the place where
it arises.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum, auto
from typing import Self

from msgspec import Struct


class Grade(Enum):
    """How grave a notice is, and what follows from it."""

    ENDING = auto()
    """The record is not what its measurement was to be."""
    FAULT = auto()
    """Something went wrong: the measurement ends with exit status 6."""
    NOTE = auto()
    """Something to know; nothing is wrong."""


class NoticeKind(StrEnum):
    """Kinds of notice, the gravest first, by the words that files, lists and titles have for them."""

    SIMULATED = "simulated", Grade.NOTE, "no board was measured"
    ALTERED = "altered", Grade.ENDING, "a file was changed after the run; no figure is taken from it"
    GOING_ON = "going on", Grade.ENDING, "the measurement goes on"
    PARTIAL = "partial", Grade.ENDING, "the run ended early, or its program was killed"
    FAILED = "failed", Grade.ENDING, "a fault makes figures wrong, or there is no sample"
    INCOMPLETE = "incomplete", Grade.ENDING, "some cells of a campaign have no result"
    NOT_PASSED = "not passed yet", Grade.ENDING, "the rig is not commissioned"

    MEND = "mend", Grade.FAULT, "a part of the rig is to be mended before a measurement"
    INTERRUPTED = "interrupted", Grade.FAULT, "the user or a signal ended the run"
    FAULT = "fault", Grade.FAULT, "an error of the system, of a file or of the analysis"
    METER = "meter", Grade.FAULT, "the meter stopped, or its sensor did not answer"
    ON_BOARD = "on the board", Grade.FAULT, "the probe, or the board's preparation"
    STATE = "board state", Grade.FAULT, "the board broke a limit of the state gate"
    LOW_VOLTAGE = "low voltage", Grade.FAULT, "the supply was below the board's limit"
    REVERSED = "reversed current", Grade.FAULT, "the current flows backwards"
    CLIPPED = "clipped samples", Grade.FAULT, "samples at the end of the meter's range"
    LOST = "lost samples", Grade.FAULT, "more than 1 % of a window without samples"
    CLOCKS = "clocks", Grade.FAULT, "clocks contradict each other, or ran at an implausible rate"
    SYNC_LINE = "sync line", Grade.FAULT, "the sync line loses or adds edges"
    UNSETTLED = "unsettled", Grade.FAULT, "settle reached its limit"
    OPERATION_LOG = "operation log", Grade.FAULT, "an operation log is damaged, missing or contradicts the loader"
    MARKS = "marks", Grade.FAULT, "marks of phases do not pair"
    NOT_CALIBRATED = "not calibrated", Grade.FAULT, "the calibration does not apply to the trace"

    TOO_SHORT = "too short", Grade.NOTE, "the run allows no conclusion"
    ONE_RUN = "one run", Grade.NOTE, "the interval does not include the spread between runs"
    STAND_IN = "stand-in for", Grade.NOTE, "other software was measured in place of `about`"
    WAITED = "waited", Grade.NOTE, "operations waited for a tenth of the run or more"
    BUSY = "busy computer", Grade.NOTE, "other programs took the processors of a simulated board"
    UNSTEADY = "unsteady repeats", Grade.NOTE, "repeats differ in energy or writes by more than chance"
    NOT_ADDITIVE = "not additive", Grade.NOTE, "runs in other mixes contradict the costs of several kinds that write"
    UNSTEADY_CELL = "unsteady cell", Grade.NOTE, "the runs of a cell differ likewise"
    NOT_REACHED = "not reached", Grade.NOTE, "`--until-u` was not reached"
    ABOVE_IDLE = "above idle", Grade.NOTE, "settle ended a little above idle, at a steady power"
    OPENING = "opening", Grade.NOTE, "what opening the database began went on during the run"
    BACKGROUND = "background", Grade.NOTE, "the engine worked in the background of reads"
    NEAR_RANGE = "near range", Grade.NOTE, "bursts may have exceeded the meter's range unseen"
    IN_STEP = "in step", Grade.NOTE, "a regular load may be in step with the meter's conversions"
    SHUNT = "shunt", Grade.NOTE, "nobody has stated the shunt, and currents may be wrong by a factor"
    CALIBRATION = "calibration", Grade.NOTE, "the calibration is old, or was made at another temperature"
    SOUND = "ok", Grade.NOTE, "a part of the rig is as it should be"
    NOTE = "note", Grade.NOTE, "a note of no kind of its own"

    grade: Grade
    meaning: str
    """What it tells, for the documentation."""

    def __new__(cls, word: str, grade: Grade, meaning: str) -> Self:
        """A kind, from its word, its grade and its meaning."""
        kind = str.__new__(cls, word)
        kind._value_, kind.grade, kind.meaning = word, grade, meaning
        return kind

    @property
    def rank(self) -> int:
        """Its place in the order of gravity, from 0."""
        return list(NoticeKind).index(self)


class Notice(Struct, frozen=True, omit_defaults=True):
    """One thing to know."""

    kind: NoticeKind
    line: str
    """What is so, in one line, without the kind's words."""
    remedy: str = ""
    withholds: tuple[str, ...] = ()
    """Groups of figures (runs/record/result.py) that it makes wrong."""
    about: str = ""
    """What it is about, if its kind does not say that: a part of the rig, the software that another stands in for."""
    runs: tuple[str, ...] = ()
    """Names of the records that have it, in an output on several; empty inside a record."""

    @property
    def text(self) -> str:
        """Line and remedy."""
        return f"{self.line}: {self.remedy}" if self.remedy else self.line

    @property
    def sentence(self) -> str:
        """The text as a sentence, after the names of the records that have it."""
        is_path = "/" in self.text.partition(" ")[0]
        said = self.text if is_path else self.text[:1].upper() + self.text[1:]
        said = said if said.endswith((".", "!", "?")) else f"{said}."
        more = {0: "", 1: "", 2: " and 1 more run"}.get(len(self.runs), f" and {len(self.runs) - 1} more runs")
        return f"{self.runs[0]}{more}: {said}" if self.runs else said

    @property
    def mark(self) -> str:
        """The kind in a word or two, for a column of a table."""
        return f"{self.kind} {self.about}".rstrip()

    @property
    def title(self) -> str:
        """The same in capitals, to stand before the text."""
        return f"{self.kind.upper()} {self.about}".rstrip()

    def __str__(self) -> str:
        return f"{self.title}: {self.sentence}"


def faults_of(notices: Iterable[Notice]) -> list[Notice]:
    """Those that are faults."""
    return [notice for notice in notices if notice.kind.grade is Grade.FAULT]


def withheld_by(notices: Iterable[Notice]) -> dict[str, str]:
    """Group of figures -> text of the first notice that makes them wrong."""
    withheld: dict[str, str] = {}
    for notice in notices:
        for group in notice.withholds:
            withheld.setdefault(group, notice.text)
    return withheld
