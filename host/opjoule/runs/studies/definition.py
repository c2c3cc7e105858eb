"""The contents of a study.toml: a job or a workload of the loader, with its cells and the paper that it repeats.

Reference: docs/reference/studies.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Meta

from opjoule.base.errors import BadInput, unknown
from opjoule.base.settings import MEDIUM, as_struct
from opjoule.base.toml_file import check_match, combinations, matches, where_values
from opjoule.boards.profiles import find_profile

EXACT: Final = "exact"
NEAR: Final = "near"
STAND_IN: Final = "stand-in"
MISSING: Final = "missing"
STATES: Final = (EXACT, NEAR, STAND_IN, MISSING)
SYSTEM: Final = "system"
"""The axis whose values are databases."""
COMMAND: Final = "command"
"""Axis of the commands that `compare -- COMMAND COMMAND` measures."""
DEVICE: Final = "device"
SCALE: Final = "scale"
"""Factor on all counts of a study, in the settings of its records."""
"""Axes whose values are replaced by --device and --storage."""
FIGURE: Final = "figure"
"""Name by which --only selects figures; axes and counts are selected by their own names."""


@dataclass(frozen=True)
class Counterpart:
    """A figure or table of the paper, and its counterpart in this study."""

    paper: str
    """Name in the paper: Figure 2."""
    shows: str
    state: Literal["exact", "near", "stand-in", "missing"]
    """EXACT, NEAR (`differs` states the difference), STAND_IN (other software or another device stands for the paper's,
    or only the user has it) or MISSING (`differs` states the reason)."""
    command: str = ""
    axes: str = ""
    groups: str = ""
    units: str = ""
    differs: str = ""
    drawn: tuple[str, ...] = ()
    """Name patterns of the figures that runs.py draws for it."""
    media: tuple[str, ...] = ()
    """Patterns of the media that represent the paper's media. Records on other media are not drawn. Empty: any."""
    phases: tuple[str, ...] = ()
    """Phases shown in its figures. Empty: all."""

    def __post_init__(self) -> None:
        if self.state != EXACT and not self.differs:
            raise ValueError(f"{self.paper}: state the difference, or why it is missing, in differs")


@dataclass(frozen=True)
class PaperConclusion:
    """A conclusion of the paper, expressed as a ratio of one measure between two cells."""

    question: str
    where: str
    """Section or figure of the paper."""
    measure: str
    of: Mapping[str, Any]
    """Axis or count -> value of the first cell. Each combination of values of the other axes gives an answer."""
    to: Mapping[str, Any]
    """Axis -> value of the second cell, for the axes in which it differs from the first."""
    paper: Annotated[float, Meta(description="a ratio, or 'more' or 'less'")]
    about: float = 0.0
    """Relative tolerance around 1 within which the paper sees no difference; 0 if it concludes that there is one."""
    phase: str = ""
    to_phase: str = ""
    """Phase of the second cell, if it differs from the first cell's."""
    largest: str = ""
    """Name of a count of whose largest value in the study the paper says it."""
    only_direction: bool = False
    """True if the paper gives the direction but no factor."""
    said_of: Mapping[str, Any] = field(default_factory=dict)
    """Setting -> value or values of which the paper says it, in place of the study's own `said_of`."""
    stands_in: str = ""
    """What the paper measured in place of the board in `said_of`, for example a phone."""
    observation: str = ""
    """Number of the paper's observation that rests on it; empty if there is none."""


_CLAIMS: Final = {"more": 2.0, "less": 0.5}
"""What a paper says that gives no factor -> a ratio in that direction."""


def conclusion_of(
    entry: Mapping[str, Any], where: str, axes: Mapping[str, Sequence[str]], phases: Mapping[str, str]
) -> PaperConclusion:
    """One of the [[conclusions]] of a study.toml, whose place is `where`.

    Raises: BadInput: an unknown key, axis, value or phase.
    """
    claim = entry.get("paper")
    factor = _CLAIMS.get(claim, claim) if isinstance(claim, str) else claim
    stated = {"of": {}, "to": {}, **entry, **({} if claim is None else {"paper": factor})}
    made = replace(as_struct(stated, PaperConclusion, where), only_direction=claim in _CLAIMS)
    if not made.to and not made.to_phase:
        raise BadInput(f"{where} {made.question!r}: name the other side of the comparison in to or to_phase")
    for match in (made.of, made.to):
        if of_axes := {axis: value for axis, value in match.items() if axis not in (DEVICE, MEDIUM)}:
            check_match(of_axes, axes)
    for phase in filter(None, (made.phase, made.to_phase)):
        if phase not in phases:
            raise BadInput(f"{where} {made.question!r}: no phase {phase}")
    return made


Counts = Mapping[str, tuple[int, ...]]
"""Name of a count -> its values, in order."""
Part = Mapping[str, str | Sequence[int]]
"""One combination of the `within` axes: their values, and the counts that belong to them. The job of a study without
such axes has a single part, which contains only counts."""


@dataclass(frozen=True)
class StudyFigure:
    """One figure of a study, and the cells that it shows."""

    title: str
    by: tuple[str, ...]
    """Axes that the figure compares. It is drawn only if one of them has several values."""
    shows: Mapping[str, Any]
    """Axis -> value, or list of values, that the figure shows. Other axes are not restricted."""

    def also_on(self, devices: Sequence[str]) -> Self:
        """The same figure with further boards. A board that is not in the paper may appear in any figure."""
        if DEVICE not in self.shows:
            return self
        boards = self.shows[DEVICE]
        boards = [*([boards] if isinstance(boards, str) else boards), *devices]
        return replace(self, shows={**self.shows, DEVICE: boards})


@dataclass(frozen=True)
class Connection:
    """The user's access to a database that the rig does not start."""

    what: str
    """In words, for example a connection string or a library."""
    needed: bool = False
    """True if the database cannot be reached without it; its cells are then left out."""


@dataclass(frozen=True)
class StudyFolder:
    """One study: a job (`command`), or a workload of the loader (`workload`)."""

    name: str
    """The folder's name, or the path that the user gave."""
    folder: Path
    title: str
    command: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    workload: str = ""
    """Name under ycsb-workloads/, with axes in braces."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Options of measure.py that are common to all cells of a workload."""
    repeats: int = 1
    """Number of blocks, each of which contains every cell once."""
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    within: tuple[str, ...] = ()
    """Axes that the job varies itself, within one cell."""
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Axis -> values that are not in the paper. They are measured only if --only names them."""
    counts: Counts = field(default_factory=dict)
    exclude: tuple[Mapping[str, Any], ...] = ()
    where: tuple[Mapping[str, Any], ...] = ()
    figures: Mapping[str, StudyFigure] = field(default_factory=dict)
    wheels: Mapping[str, Path] = field(default_factory=dict)
    """Value of an axis -> pinned requirements of the Python modules that its job needs."""
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Value of an axis -> Debian packages that it needs if this computer is the simulated board."""
    phases: Mapping[str, str] = field(default_factory=dict)
    """Phase -> its description."""
    unranked: tuple[str, ...] = ()
    """Phases in which systems do not compete. No best system is named for them."""
    constant: tuple[str, ...] = ()
    """Phases that take the same time at any scale, for the estimate of a study's time."""
    cold: Mapping[str, str] = field(default_factory=dict)
    """Phase -> its cold counterpart. Both are drawn side by side."""
    bars: Mapping[str, str] = field(default_factory=dict)
    """Measure -> phase that it belongs to. Both are drawn by system, with the phase's joules."""
    grid: Mapping[str, Any] = field(default_factory=dict)
    """How the best systems are drawn as a grid: `down` an axis, `across` axes, `also` a measure in its own rows."""
    best: Mapping[str, str] = field(default_factory=dict)
    """Measure -> "least" or "most": by which the best system of a cell is named."""
    per: str = ""
    """Name of one operation (`row`). Figures are then per operation, and the job reports per_NAME_us."""
    counterparts: tuple[Counterpart, ...] = ()
    conclusions: tuple[PaperConclusion, ...] = ()
    said_of: Mapping[str, Any] = field(default_factory=dict)
    """Setting (an axis, device, storage) -> value or values of which the paper says its conclusions. A paper of another
    computer than a board names no device."""
    observations: Mapping[str, str] = field(default_factory=dict)
    """Number of an observation that the paper states -> its statement."""
    circular: Mapping[str, str] = field(default_factory=dict)
    """Axis -> which of the paper's own numbers a simulated rig has by this axis, in words."""
    connections: Mapping[str, Connection] = field(default_factory=dict)
    """Database (value of an axis) -> the user's access to it, given in the --connections file."""

    @property
    def systems(self) -> tuple[str, ...]:
        """The databases that the study runs on."""
        return self.axes.get(SYSTEM, ())

    def on(self, devices: Sequence[str], media: Sequence[str]) -> Self:
        """The study with other boards and media. Each of the two changes only if it is an axis of the study.

        Args:
            media: the new media; if empty, the study's own media that each board can take.
        Raises: BadInput: no such board.
        """
        axes, exclude, figures = dict(self.axes), list(self.exclude), dict(self.figures)
        if DEVICE in axes:
            axes[DEVICE] = tuple(devices)
            others = [device for device in devices if device not in self.axes[DEVICE]]
            figures = {name: figure.also_on(others) for name, figure in figures.items()}
            for device in devices if MEDIUM in axes and not media else ():
                takes = find_profile(device).media
                exclude += [{DEVICE: device, MEDIUM: medium} for medium in axes[MEDIUM] if medium not in takes]
        if MEDIUM in axes and media:
            axes[MEDIUM] = tuple(media)
            exclude = [cells for cells in exclude if MEDIUM not in cells]
            for name, figure in figures.items():
                shows = {axis: values for axis, values in figure.shows.items() if axis != MEDIUM}
                figures[name] = replace(figure, shows=shows)
        return replace(self, axes=axes, exclude=tuple(exclude), figures=figures)

    def cells(self, only: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
        """The requested cells that are not excluded. If the study has figures, only cells that a figure shows.

        A cell does not include the `within` axes; parts() has them.

        Args:
            only: requested values by name of an axis or count, or requested figures; all values of names not given.
        Raises: BadInput: no such axis, figure or value, or no cell is left.
        """
        self._check_only(only)
        made = self._asked([name for name in self.axes if name not in self.within], only)
        made = [cell for cell in made if not any(matches(excluded, cell) for excluded in self.exclude)]
        left = [cell for cell in made if self.parts(cell, 1.0, only)]
        if self.figures:
            figures = set(only.get(FIGURE, self.figures))
            left = [cell for cell in left if figures & set(self.figures_of(cell))]
        if not left:
            boards = ", ".join(self.axes.get(DEVICE, ()))
            media = f" on {boards}: --storage names other media" if boards else ""
            raise BadInput(f"--only leaves nothing of the study{media}")
        return left

    def parts(self, cell: Mapping[str, str], scale: float, only: Mapping[str, Sequence[str]]) -> tuple[Part, ...]:
        """The requested parts of a cell, with their counts after scaling.

        Empty if the cell has none of the requested values of a count.
        """
        combined = ((part, self.scaled({**cell, **part}, scale, only)) for part in self._asked(self.within, only))
        return tuple({**part, **counts} for part, counts in combined if all(counts.values()))

    def _asked(self, axes: Sequence[str], only: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
        """All combinations of the requested values of some axes."""
        values = {}
        for axis in axes:  # values named by --only or, if it does not name the axis, the paper's values
            in_paper = [value for value in self.axes[axis] if value not in self.beside.get(axis, ())]
            values[axis] = [value for value in self.axes[axis] if value in only.get(axis, in_paper)]
        return combinations(values)

    def _check_only(self, only: Mapping[str, Sequence[str]]) -> None:
        known = {**self.axes, **{name: tuple(map(str, values)) for name, values in self.counts.items()}}
        known |= {FIGURE: tuple(self.figures)} if self.figures else {}
        for name, values in only.items():
            if name not in known:
                raise BadInput(unknown("axis of --only", name, known))
            for value in values:
                if value not in known[name]:
                    raise BadInput(unknown(f"{name} of --only", value, known[name]))

    def rank(self, cell: Mapping[str, str]) -> int:
        """Place of a cell among all in the axes' order; the same on any board and medium."""
        place = 0
        for name, values in self.axes.items():
            if name not in (DEVICE, MEDIUM, *self.within):
                place = place * len(values) + values.index(cell[name])
        return place

    def figures_of(self, cell: Mapping[str, str]) -> dict[str, list[str]]:
        """Figure that shows the cell -> axes that it compares."""
        return {name: [*figure.by] for name, figure in self.figures.items() if matches(figure.shows, cell)}

    def scaled(self, cell: Mapping[str, str], scale: float, only: Mapping[str, Sequence[str]]) -> Counts:
        """The requested counts of one cell, multiplied by the scale: at least 1, without duplicates."""
        of_cell = {name: values for name, values in where_values(self.where, cell).items() if name in self.counts}
        counts = {**self.counts, **{name: whole_numbers(value) for name, value in of_cell.items()}}
        return {
            name: tuple(
                dict.fromkeys(
                    max(1, round(value * scale)) for value in values if str(value) in only.get(name, [str(value)])
                )
            )
            for name, values in counts.items()
        }

    def options(self, cell: Mapping[str, str]) -> dict[str, Any]:
        """Further options of measure.py for a cell of a workload, apart from its axes and counts."""
        of_cell = where_values(self.where, cell)
        return {
            **self.constants,
            **{name: value for name, value in of_cell.items() if name not in self.counts},
        }


def whole_numbers(value: int | Sequence[int]) -> tuple[int, ...]:
    """The numbers of a count that has one value or several."""
    return (value,) if isinstance(value, int) else tuple(value)


def in_words(part: Part) -> str:
    """A part in words, with its counts."""
    return ", ".join(
        f"{name} {value}" if isinstance(value, str) else f"{numbers(value)} {name}" for name, value in part.items()
    )


def numbers(counts: Sequence[int]) -> str:
    """Counts as text, separated by commas."""
    return ", ".join(f"{count:,}" for count in counts)
