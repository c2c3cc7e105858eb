"""The interface of studies: a study yields steps, each a phase with a role and possibly a workload."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from opjoule.boards.board import Board
from opjoule.runs.record.phases import Role


@dataclass(frozen=True)
class Workload:
    """A program on the board."""

    command: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Option of the command -> suffix of the file that the option names; the files are copied to the record's raw/."""
    marks: tuple[str, str] | None = None
    """Names of the JSON lines in its output that begin and end the phase; None: from its start to its end."""
    operations: int = 0
    """Number of operations that it will do, for the progress display; 0 if unknown."""
    lasts_s: float | None = None
    """Expected duration [s]; None if unknown."""
    bad_input_status: int | None = None
    """Exit status for wrong arguments; None if it has none."""
    stream: tuple[str, ...] = ()
    """A command of this computer whose output is the stream of operations."""
    check: Callable[[Mapping[str, Any], str], None] | None = None
    """Called with its summary and tag after a successful end; raises RigFault if the work was not done as expected."""


@dataclass(frozen=True)
class Step:
    """One phase of a measurement: its name, its role, and its workload if it runs one."""

    name: str
    role: Role
    workload: Workload | None = None

    @property
    def runs(self) -> Workload:
        """The workload; only for a step that runs one."""
        assert self.workload, f"{self.name} runs nothing"
        return self.workload


class Study(ABC):
    """One study with all its settings, which can be written to JSON and read back."""

    name: ClassVar[str]
    """Name of the kind of study in a plan."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Short name of letters, digits and dashes, for the record's directory."""

    @property
    def engine(self) -> str:
        """The database that the loader must support; empty if none."""
        return ""

    @property
    @abstractmethod
    def title(self) -> str:
        """The measured work in a few words."""

    @abstractmethod
    def words(self) -> Mapping[str, str]:
        """Step name -> description of the step, for the displayed plan."""

    @abstractmethod
    def settings(self) -> list[tuple[str, str]]:
        """(name, value in words) of each setting, for the displayed plan."""

    @abstractmethod
    def steps(self) -> list[Step]:
        """Names and roles of one repeat's steps and of the controls, in order, without workloads."""

    def once(self) -> list[Step]:
        """Names and roles of the steps before all repeats, in order, without workloads."""
        return []

    def check_here(self) -> None:
        """Checks this computer's part of the study before the rig is opened. Raises: BadInput, RigFault."""

    @abstractmethod
    def check(self, board: Board) -> None:
        """Makes the board check all it can before anything is changed. Raises: BadInput: the first problem."""

    def check_space(self, board: Board) -> None:
        """Checks that the board's medium has space for the study's data. Raises: BadInput: it has not."""

    def under(self, period_s: float) -> Self:
        """The study, adapted to a meter with this sampling period [s]."""
        return self

    def repeats(self, board: Board, raw: Path) -> AbstractContextManager[Iterable[Step]]:
        """Context of all repeats, with the steps that come once before them; when it ends, the board is restored."""
        return nullcontext([])

    @property
    def equal_rate_group(self) -> str:
        """Name of its work, if that runs at the rate that all conditions of a campaign with it have; else empty."""
        return ""

    def ranging(self) -> Self:
        """The study as a short run that shows how fast its work can go."""
        return self

    def at_rate(self, operations_per_s: float) -> Self:
        """The study at the rate of its campaign; its plan stays the same."""
        return self

    def after(self, summaries: Mapping[str, Mapping[str, Any]]) -> Self:
        """The study with what the steps before all repeats have shown; `summaries`: of workloads, by tag."""
        return self

    @abstractmethod
    def repeat(self, board: Board, number: int, raw: Path) -> AbstractContextManager[Iterable[Step]]:
        """Context with the steps of one repeat; when it ends, the board is restored to its earlier state."""

    def mixes(self) -> Sequence[Self]:
        """The study in other mixes of its operations, each run once after all repeats, like a further repeat."""
        return []

    def controls(self, board: Board) -> Iterable[Step]:
        """Steps after all repeats."""
        return []

    @abstractmethod
    def facts(self, board: Board) -> dict[str, Any]:
        """Name and version of the program that makes the operations, and further facts for run.json."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything that is needed to run the study again elsewhere."""


BASELINE_BEFORE = Step("idle-before", Role.BASELINE)
BASELINE_AFTER = Step("idle-after", Role.BASELINE)
DRAIN = Step("settle", Role.DRAIN)


def around(work: Step, *, prepare: Step | None = None) -> list[Step]:
    """The usual cycle: preparation and its drain, if any, then baseline, work, drain, baseline."""
    first = [prepare, Step(f"{prepare.name}-settle", Role.DRAIN)] if prepare else []
    return [*first, BASELINE_BEFORE, work, DRAIN, BASELINE_AFTER]
