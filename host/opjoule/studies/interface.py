"""What a study gives to the measurement: steps, each a phase with a role and, where one is run, a workload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from opjoule.devices.board import Board
from opjoule.record.phases import Role


@dataclass(frozen=True)
class Workload:
    """A program on the board."""

    command: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Option of the command -> ending of the file that it names; the files come to the record's raw/."""
    marks: tuple[str, str] | None = None
    """Names of the JSON lines on its output that begin and end the phase; None: from its start to its end."""
    operations: int = 0
    """Operations that it will do, for the progress shown; 0 where they are not known."""
    lasts_s: float | None = None
    """How long it will take, where that is known."""
    bad_input_status: int | None = None
    """Exit status by which it says that its arguments are wrong; None where it has none."""
    stream: tuple[str, ...] = ()
    """A command of this computer whose output are its operations."""
    check: Callable[[Mapping[str, Any], str], None] | None = None
    """Is given its summary and tag once it has ended well; raises RigFault where it did not do what it was to."""


@dataclass(frozen=True)
class Step:
    """One phase of a measurement: its name, its role, and the workload of those that run one."""

    name: str
    role: Role
    workload: Workload | None = None

    @property
    def runs(self) -> Workload:
        """The workload of a step that runs one."""
        assert self.workload, f"{self.name} runs nothing"
        return self.workload


class Study(ABC):
    """One study with all its settings: a value that can be written down and read again."""

    name: ClassVar[str]
    """Name of the kind of study, as a plan has it."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Short, of letters, digits and dashes: for the record's directory."""

    @property
    def engine(self) -> str:
        """The database that the loader has to know; empty for none."""
        return ""

    @property
    @abstractmethod
    def title(self) -> str:
        """What is measured, in a few words."""

    @abstractmethod
    def words(self) -> Mapping[str, str]:
        """Step name -> what happens in it, for the plan that is shown."""

    @abstractmethod
    def settings(self) -> list[tuple[str, str]]:
        """What is set, in words, for the plan that is shown: (name, what)."""

    @abstractmethod
    def steps(self) -> list[Step]:
        """Names and roles of one repeat's steps and of the controls, in order; workloads left out."""

    def check_here(self) -> None:
        """Checks what this computer has to do for the study, before the rig is opened. Raises: BadInput, RigFault."""

    @abstractmethod
    def check(self, board: Board) -> None:
        """Has the board check what it can before anything is touched. Raises: BadInput: the first thing wrong."""

    def check_space(self, board: Board) -> None:
        """Sees that what the study writes has room on the board's medium. Raises: BadInput: it has not."""

    def under(self, period_s: float) -> Study:
        """The study as it is carried out under a meter whose samples come so far apart [s]."""
        return self

    @abstractmethod
    def repeat(self, board: Board, number: int, raw: Path) -> AbstractContextManager[Iterable[Step]]:
        """The steps of one repeat, on a board that is put back as it was when the context ends."""

    def in_blocks(self) -> Study | None:
        """The study with its work in randomised blocks, to be carried out once after all repeats; None for nothing."""
        return None

    def controls(self, board: Board) -> Iterable[Step]:
        """Steps after all repeats."""
        return []

    @abstractmethod
    def facts(self, board: Board) -> dict[str, Any]:
        """Name and version of what makes the operations, and whatever else run.json is to say."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything that the study needs to be run again, elsewhere."""


BASELINE_BEFORE = Step("idle-before", Role.BASELINE)
BASELINE_AFTER = Step("idle-after", Role.BASELINE)
DRAIN = Step("settle", Role.DRAIN)


def around(work: Step, *, prepare: Step | None = None) -> list[Step]:
    """The usual cycle: what is prepared and drained, then baseline, work, drain, baseline."""
    first = [prepare, Step(f"{prepare.name}-settle", Role.DRAIN)] if prepare else []
    return [*first, BASELINE_BEFORE, work, DRAIN, BASELINE_AFTER]
