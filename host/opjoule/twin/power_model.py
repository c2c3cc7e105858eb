"""From activity to supply current: the stated model of a board and its medium."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opjoule.errors import BadInput


@dataclass(frozen=True)
class MediumModel:
    """One storage medium: its rates [B/s] and its power idle, busy, and for a while after the last write [W]."""

    write_bytes_per_s: float
    read_bytes_per_s: float
    idle_w: float
    active_w: float
    tail_w: float = 0.0
    """Above idle, while the medium folds and collects after it was written to [W]."""
    tail_s: float = 0.0
    """For how long it does."""


@dataclass(frozen=True)
class Supply:
    """A voltage source with a series resistance, seen at the board."""

    open_voltage_v: float
    resistance_ohm: float

    def at_power(self, power_w: float) -> tuple[float, float]:
        """(current [A], voltage [V]) at which the board draws `power_w`: the upper root of P = I (V0 - I R)."""
        v, r = self.open_voltage_v, self.resistance_ohm
        current_a = (v - math.sqrt(v * v - 4 * r * power_w)) / (2 * r) if r else power_w / v
        return current_a, v - current_a * r


@dataclass(frozen=True)
class BoardModel:
    """Power of one board by the number of its busy cores, linear in between [W]."""

    busy_cores_w: tuple[float, ...]

    def power_w(self, busy_cores: float) -> float:
        """Power at `busy_cores`, which may be fractional and is limited to the board's cores."""
        busy = min(max(busy_cores, 0.0), len(self.busy_cores_w) - 1.0)
        below = min(int(busy), len(self.busy_cores_w) - 2)
        low_w, high_w = self.busy_cores_w[below : below + 2]
        return low_w + (high_w - low_w) * (busy - below)


@dataclass(frozen=True)
class Activity:
    """What the loader did in one interval of its own clock."""

    start_board_ns: int
    end_board_ns: int
    cpu_s: float
    read_bytes: int
    written_bytes: int


class LoadModel:
    """What turns activity into supply current and voltage."""

    hold_ns = 0
    """For so long an activity waits until everything of its time is known."""
    pending_bytes = 0.0
    """Written, not yet on the simulated medium."""

    def begin(self, folder: Path) -> None:
        """Told once where what runs on the board has its files, and where files of the model's own go."""

    def step(self, activity: Activity) -> tuple[float, float]:
        """(current [A], voltage [V]) over one interval."""
        raise NotImplementedError

    def rows(self, activity: Activity, later: Sequence[Activity]) -> list[tuple[int, float, float]]:
        """The same from moments inside the interval on: (board_ns, current [A], voltage [V]) each.

        Args:
            later: the intervals that are known to follow.
        """
        return [(activity.start_board_ns, *self.step(activity))]

    def end(self) -> None:
        """Told once that nothing more will come."""


@dataclass(frozen=True)
class MeanPowers:
    """Mean power of one interval by what drew it [W]."""

    rest_w: float
    """The board at rest, its medium included."""
    processor_w: float
    """Above that."""
    reading_w: float
    write_back_w: float
    tail_w: float

    @property
    def total_w(self) -> float:
        """All together."""
        return self.rest_w + self.processor_w + self.reading_w + self.write_back_w + self.tail_w


class PowerModel(LoadModel):
    """Power by processor time and I/O; written bytes wait in a queue that drains at the medium's rate."""

    def __init__(self, board: BoardModel, medium: MediumModel, supply: Supply) -> None:
        self.board = board
        self.supply = supply
        self._medium = medium
        self._tail_left_s = 0.0

    @property
    def greatest_w(self) -> float:
        """With all cores and the medium busy, a tail in it [W]."""
        medium = self._medium
        return self.board.power_w(math.inf) + medium.idle_w + medium.active_w + medium.tail_w

    def step(self, activity: Activity) -> tuple[float, float]:
        """(current [A], voltage [V]) over one interval; the queue advances by it."""
        return self.supply.at_power(self.drawn(activity).total_w)

    def drawn(self, activity: Activity) -> MeanPowers:
        """Power over one interval; the queue advances by it."""
        span_s = max((activity.end_board_ns - activity.start_board_ns) * 1e-9, 1e-9)
        self.pending_bytes = max(0.0, self.pending_bytes + activity.written_bytes)
        drained = min(self.pending_bytes, self._medium.write_bytes_per_s * span_s)
        self.pending_bytes -= drained
        writes = drained / (self._medium.write_bytes_per_s * span_s)
        reads = activity.read_bytes / (self._medium.read_bytes_per_s * span_s)
        active_w = self._medium.active_w / max(writes + reads, 1.0)
        rest_w = self.board.power_w(0.0)
        return MeanPowers(
            rest_w + self._medium.idle_w,
            self.board.power_w(activity.cpu_s / span_s) - rest_w,
            active_w * reads,
            active_w * writes,
            self._tail_w(drained, span_s),
        )

    def _tail_w(self, drained: float, span_s: float) -> float:
        """Mean power of the medium's tail over one interval; it begins anew with each write."""
        if drained > 0:
            self._tail_left_s = self._medium.tail_s
            return 0.0
        in_tail_s = min(self._tail_left_s, span_s)
        self._tail_left_s -= in_tail_s
        return self._medium.tail_w * in_tail_s / span_s


def load_model(board: str, medium: str, supply: Supply | None = None) -> PowerModel:
    """The model of one board with one medium, from models.toml, on this supply or the one stated there.

    Raises: BadInput: there is no model of this board or medium.
    """
    data = tomllib.loads((Path(__file__).parent / "models.toml").read_text())
    for kind, name in (("board", board), ("medium", medium)):
        if name not in data[kind]:
            known = ", ".join(sorted(data[kind]))
            raise BadInput(f"there is no power model of {kind} {name}: --simulate knows {known}")
    return PowerModel(
        BoardModel(tuple(data["board"][board]["busy_cores_w"])),
        MediumModel(**data["medium"][medium]),
        supply or Supply(**data["supply"]),
    )
