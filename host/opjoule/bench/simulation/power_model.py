"""Supply current from activity: the stated models of boards and media (models.toml), or a user's twin profile."""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Self

from msgspec import Meta, Struct

from opjoule.base.errors import BadInput
from opjoule.base.files import file_sha256
from opjoule.base.settings import as_struct
from opjoule.base.toml_file import read_toml
from opjoule.bench.simulation.medium_work import MediumCourse, MediumMode, MediumStretch
from opjoule.boards.profiles import BoardAndMedium

AVAILABLE: Final = 0.8
"""Fraction of a board's memory to which limits of dirty pages refer; kernel and programs use the rest. Assumed."""
DIRTY_LIMIT: Final = 0.20
"""Fraction of available memory above which writers wait. Source: Linux, sysctl/vm.rst, dirty_ratio."""
DIRTY_BACKGROUND: Final = 0.10
"""Fraction of available memory above which write-back starts. Source: as above, dirty_background_ratio."""


NotNegative = Annotated[float, Meta(ge=0.0, le=1e300, description="a number of at least 0")]
Positive = Annotated[float, Meta(gt=0.0, le=1e300, description="a number above 0")]


@dataclass(frozen=True)
class MediumModel:
    """One medium: its rates [B/s], its flush latency [s], and its power idle, busy and in its tail [W]."""

    write_bytes_per_s: Positive
    read_bytes_per_s: Positive
    flush_s: NotNegative
    """Time to empty its own cache, which every sync requests [s]."""
    idle_w: NotNegative
    active_w: NotNegative
    """Power above idle while the medium reads, writes or flushes [W]."""
    tail_w: NotNegative = 0.0
    """Power above idle after the medium was busy [W]."""
    tail_s: NotNegative = 0.0
    """Length of that tail [s]."""
    spread: dict[str, NotNegative] = field(default_factory=dict)
    """Field -> bound of the relative difference between media of this kind, either way."""

    def __post_init__(self) -> None:
        if unknown_fields := self.spread.keys() - self.__dataclass_fields__.keys():
            raise ValueError(f"spread has no field {min(unknown_fields)}")

    def drawn(self, chance: random.Random) -> Self:
        """One medium of this kind: each field with a spread is drawn from a uniform distribution."""
        parts = sorted(self.spread.items())
        values = {name: getattr(self, name) * (1 + chance.uniform(-part, part)) for name, part in parts}
        return replace(self, **values, spread={})


@dataclass(frozen=True)
class Supply:
    """A voltage source with a series resistance, seen at the board."""

    open_voltage_v: Positive
    resistance_ohm: NotNegative

    def at_power(self, power_w: float) -> tuple[float, float]:
        """(current [A], voltage [V]) at which the board draws `power_w`: the upper root of P = I (V0 - I R)."""
        v, r = self.open_voltage_v, self.resistance_ohm
        current_a = (v - math.sqrt(v * v - 4 * r * power_w)) / (2 * r) if r else power_w / v
        return current_a, v - current_a * r


@dataclass(frozen=True)
class BoardModel:
    """Power of one board by the number of its busy cores, linear in between [W], and its memory."""

    busy_cores_w: Annotated[
        tuple[NotNegative, ...], Meta(min_length=2, description="the powers of 0, 1, ... busy cores [W]")
    ]
    memory_bytes: Annotated[int, Meta(gt=0, description="a whole number above 0")]
    idle_between_w: tuple[NotNegative, NotNegative] | None = None
    """Least and greatest idle power of units of this board; None: not known, and not drawn."""
    one_core_between_w: tuple[NotNegative, NotNegative] | None = None
    """The same of what the first busy core adds."""

    def drawn(self, chance: random.Random) -> Self:
        """One unit of this board: idle power and the first core's are drawn from uniform distributions."""
        steps_w = [after - before for before, after in pairwise(self.busy_cores_w)]
        idle_w = chance.uniform(*self.idle_between_w) if self.idle_between_w else self.busy_cores_w[0]
        if self.one_core_between_w:
            steps_w[0] = chance.uniform(*self.one_core_between_w)
        powers_w = tuple(accumulate([idle_w, *steps_w]))
        return replace(self, busy_cores_w=powers_w, idle_between_w=None, one_core_between_w=None)

    def power_w(self, busy_cores: float) -> float:
        """Power at `busy_cores`, which may be fractional and is limited to the board's cores."""
        busy = min(max(busy_cores, 0.0), len(self.busy_cores_w) - 1.0)
        below = min(int(busy), len(self.busy_cores_w) - 2)
        low_w, high_w = self.busy_cores_w[below : below + 2]
        return low_w + (high_w - low_w) * (busy - below)

    @property
    def page_cache_bytes(self) -> int:
        """Most bytes of files in memory."""
        return int(AVAILABLE * self.memory_bytes)

    @property
    def dirty_limit_bytes(self) -> int:
        """Dirty bytes above which writers wait."""
        return int(DIRTY_LIMIT * self.page_cache_bytes)

    @property
    def dirty_background_bytes(self) -> int:
        """Dirty bytes above which the kernel starts to write back."""
        return int(DIRTY_BACKGROUND * self.page_cache_bytes)


@dataclass(frozen=True)
class Activity:
    """The board's activity in one interval of its clock."""

    start_board_ns: int
    end_board_ns: int
    cpu_s: float = 0.0
    read_bytes: int = 0
    """Bytes read from the board's medium."""
    written_bytes: int = 0
    dirty_bytes: int = 0
    """Dirty pages at the end of the interval."""

    @property
    def span_s(self) -> float:
        """Length of the activity [s]."""
        return max((self.end_board_ns - self.start_board_ns) * 1e-9, 1e-9)


Rows = list[tuple[int, float, float]]
"""Time [board_ns], and current [A] and voltage [V] from then on, per row."""


class LoadModel(ABC):
    """Turns activity into supply current and voltage."""

    hold_ns = 0
    """Time for which an activity is delayed until all events of its interval are known."""

    def begin(self, folder: Path) -> None:
        """Called once, before everything else; `folder`: files of the board's programs, and of the model."""

    @abstractmethod
    def rows(self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]) -> Rows:
        """Current and voltage, each from a moment inside one interval on.

        `later`: the known subsequent intervals; `busy`: busy stretches of the medium in the interval, in order of time.
        """

    def end(self) -> None:
        """Called once, after the last activity."""


class PowerModel(LoadModel):
    """Power from processor time and the medium's mode."""

    def __init__(self, board: BoardModel, medium: MediumModel, supply: Supply) -> None:
        self.board = board
        self.medium = medium
        self.supply = supply
        self._course = MediumCourse(medium.tail_s)

    @property
    def greatest_w(self) -> float:
        """Power with all cores and the medium busy [W]."""
        medium = self.medium
        return self.board.power_w(math.inf) + medium.idle_w + max(medium.active_w, medium.tail_w)

    @property
    def rest_w(self) -> float:
        """Power at rest, with an idle medium [W]."""
        return self.board.power_w(0.0) + self.medium.idle_w

    def processor_w(self, activity: Activity) -> float:
        """Mean power of the processor above rest [W]."""
        return self.board.power_w(activity.cpu_s / activity.span_s) - self.board.power_w(0.0)

    def stretches(self, activity: Activity, busy: Sequence[MediumStretch]) -> list[MediumStretch]:
        """The medium's modes over one interval, which must follow that of the last call."""
        return self._course.between(activity.start_board_ns, activity.end_board_ns, busy)

    def medium_w(self, mode: MediumMode) -> float:
        """The medium's power above idle [W]."""
        if mode is MediumMode.IDLE:
            return 0.0
        return self.medium.tail_w if mode is MediumMode.TAIL else self.medium.active_w

    def rows(self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]) -> Rows:
        """One row at each change of the medium's mode."""
        board_w = self.rest_w + self.processor_w(activity)
        return [
            (stretch.start_ns, *self.supply.at_power(board_w + self.medium_w(stretch.mode)))
            for stretch in self.stretches(activity, busy)
        ]


class CountedPower(PowerModel):
    """Power of a virtual board; only the counters of its medium are known."""

    def rows(self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]) -> Rows:
        """Rows with the medium busy from the interval's start, for as long as its bytes take at its rates."""
        span_ns = activity.end_board_ns - activity.start_board_ns
        writes_ns = round(1e9 * activity.written_bytes / self.medium.write_bytes_per_s)
        reads_ns = round(1e9 * activity.read_bytes / self.medium.read_bytes_per_s)
        scale = min(1.0, span_ns / max(writes_ns + reads_ns, 1))
        written_ns = activity.start_board_ns + int(writes_ns * scale)
        counted = [
            MediumStretch(activity.start_board_ns, written_ns, MediumMode.WRITING),
            MediumStretch(written_ns, written_ns + int(reads_ns * scale), MediumMode.READING),
        ]
        moving = [stretch for stretch in counted if stretch.end_ns > stretch.start_ns]
        return super().rows(activity, later, moving)


STATED: Final = Path(__file__).parent / "models.toml"
MAKE: Final = "host/measure.py twin --fit RECORD writes a profile"


class ModelFile(Struct):
    """Tables of models.toml (supply, boards and media only) and of a twin profile."""

    supply: Supply | None = None
    board: dict[str, BoardModel] = {}
    medium: dict[str, MediumModel] = {}
    profile: dict[str, Any] = {}
    """Description of how a twin profile was made."""
    parameters: dict[str, Any] = {}


@dataclass(frozen=True)
class Models:
    """Known boards, media and supply of a simulated rig."""

    boards: Mapping[str, BoardModel]
    media: Mapping[str, MediumModel]
    supply: Supply
    source: str = "host/opjoule/bench/simulation/models.toml"
    sha256: str = ""
    """Hash of the twin profile; empty without one."""
    own_supply: bool = False
    """Whether the supply is from a twin profile, and so is not drawn."""

    @classmethod
    def stated(cls) -> Self:
        """The models of models.toml."""
        tables = as_struct(read_toml(STATED), ModelFile, f"{STATED}:")
        assert tables.supply
        return cls(tables.board, tables.medium, tables.supply)

    @classmethod
    def with_profile(cls, path: Path | None) -> Self:
        """The stated models, with those of a twin profile replacing them; without a path the stated models alone.

        Raises: BadInput: the file cannot be read, is no profile, or has a value that no board or medium has.
        """
        stated = cls.stated()
        if path is None:
            return stated
        try:
            tables = as_struct(read_toml(path), ModelFile, f"{path}:")
            if not (tables.board or tables.medium):
                raise BadInput(f"{path} holds no [board.NAME] and no [medium.NAME]")
        except OSError as error:
            raise BadInput(f"--simulate {path}: {error.strerror}; {MAKE}") from None
        except BadInput as error:
            raise BadInput(f"--simulate {error}; {MAKE}") from None
        return replace(
            stated,
            boards={**stated.boards, **tables.board},
            media={**stated.media, **tables.medium},
            supply=tables.supply or stated.supply,
            source=str(path),
            sha256=file_sha256(path),
            own_supply=tables.supply is not None,
        )

    def load(self, board: BoardAndMedium, seed: int | None = None) -> PowerModel:
        """The model of one board with one medium, on the supply stated here; a seed draws a unit of each.

        Raises: BadInput: no model of this board or medium.
        """
        name, medium = board.profile.name, board.medium
        for kind, wanted, known in (("board", name, self.boards), ("medium", medium, self.media)):
            if wanted not in known:
                names = ", ".join(sorted(known))
                raise BadInput(f"there is no power model of {kind} {wanted}: --simulate knows {names}")
        if seed is None:
            return PowerModel(self.boards[name], self.media[medium], self.supply)
        return PowerModel(
            self.boards[name].drawn(random.Random(f"board {name} {seed}")),
            self.media[medium].drawn(random.Random(f"medium {medium} {seed}")),
            self.supply,
        )

    def facts(self) -> dict[str, str]:
        """Origin of the models, for run.json."""
        return {"models": self.source, **({"twin_profile_sha256": self.sha256} if self.sha256 else {})}
