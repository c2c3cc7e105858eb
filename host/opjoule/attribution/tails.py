"""The tail of the medium after each read or write: stretches with and without bytes, and their sums by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.energy.trace.power_trace import BoolArray, Float64Array

_STILL_BYTES_PER_S: Final = 1.0


@dataclass(frozen=True)
class Transfers:
    """Stretches of time with or without bytes to or from the medium; every array has shape (n,)."""

    begins_s: Float64Array
    finishes_s: Float64Array
    moves: BoolArray
    """Whether the medium reads or writes in a stretch."""
    between_s: Float64Array
    """Seconds of a stretch with bytes in which the medium is not busy."""
    opens: BoolArray
    """Whether a stretch with bytes is within one sample of the counters after a pause."""
    ended_s: Float64Array
    """End of the last stretch with a byte; minus infinity before the first."""
    paused_s: Float64Array
    """Length of the pause before these bytes; infinity before the first."""
    resumes_s: Float64Array
    """Start of the next stretch with a byte; infinity after the last."""

    @classmethod
    def of(
        cls,
        moved_bytes: Float64Array,
        busy_s: Float64Array,
        time_s: Float64Array,
        sampled_s: float,
        *,
        busy_before: bool = False,
    ) -> Transfers:
        """Stretches from the bytes that are read and written in each.

        Args:
            moved_bytes: shape (n,).
            busy_s: time that the medium takes for them, shape (n,).
            time_s: edges of the stretches, shape (n + 1,).
            sampled_s: distance of two samples of the counters.
            busy_before: whether the medium was busy until the first stretch.
        """
        begins_s, finishes_s = time_s[:-1], time_s[1:]
        lasts_s = finishes_s - begins_s
        moves = moved_bytes > _STILL_BYTES_PER_S * lasts_s
        between_s = np.where(moves, np.maximum(lasts_s - busy_s, 0.0), 0.0)
        earlier_s = begins_s[0] if busy_before else -np.inf
        ended_s = np.maximum.accumulate(np.where(moves, finishes_s, earlier_s))
        resumes_s = np.minimum.accumulate(np.where(moves, begins_s, np.inf)[::-1])[::-1]
        first = moves & ~np.append(False, moves[:-1])
        began = np.maximum.accumulate(np.where(first, np.arange(moves.size), 0))
        before_s = np.append(earlier_s, ended_s[:-1])[began]
        opens = moves & (begins_s < begins_s[began] + sampled_s)
        return cls(begins_s, finishes_s, moves, between_s, opens, ended_s, begins_s[began] - before_s, resumes_s)

    def tail_s(self, length_s: float, held: float, opening: float = 0.5) -> Float64Array:
        """Seconds of each stretch in which the tail goes on.

        A pause that is longer than the tail contains all of the tail. In a shorter pause, and between the
        transfers of one stretch, the medium may or may not keep the tail's power. After a long pause, the time of the
        first transfers within the first sample of the counters is unknown.

        Args:
            held: part of the tail's power in pauses that are cut short, from 0 to 1.
            opening: part of that first sample, without the medium's busy time, that is after the first transfer.
        """
        moving_s, still_s = self.while_moving_s(length_s, held, opening), self.while_still_s(length_s, held)
        return np.where(self.moves, moving_s, still_s)

    def while_moving_s(self, length_s: float, held: float, opening: float = 0.5) -> Float64Array:
        """`tail_s` if each stretch has bytes."""
        return np.where(self.opens & (self.paused_s >= length_s), opening, held) * self.between_s

    def while_still_s(self, length_s: float, held: float) -> Float64Array:
        """`tail_s` if no stretch has bytes."""
        over_s = self.ended_s + length_s
        inside_s = np.minimum(over_s, self.finishes_s)
        inside_s -= self.begins_s
        np.maximum(inside_s, 0.0, out=inside_s)
        inside_s *= np.where(self.resumes_s < over_s, held, 1.0)
        return inside_s

    @classmethod
    def joined(cls, runs: Sequence[Transfers], some: npt.NDArray[np.intp]) -> Transfers:
        """Some of the stretches of several runs, in another order."""
        return cls(**{name: np.concatenate([vars(run)[name] for run in runs])[some] for name in vars(runs[0])})


@dataclass(frozen=True)
class _Grouped:
    """Stretches in order of their group of windows."""

    transfers: Transfers
    group: npt.NDArray[np.int64]
    """Groups that have a stretch, rising, shape (g,)."""
    first: npt.NDArray[np.intp]
    """First stretch of each of these groups, shape (g,)."""
    alone: Float64Array
    """Fraction of each stretch outside of syncs."""

    @classmethod
    def of(
        cls,
        transfers: Sequence[Transfers],
        group: npt.NDArray[np.int64],
        alone: Float64Array,
        chosen: BoolArray,
    ) -> _Grouped:
        """The chosen stretches of several runs."""
        some = np.flatnonzero(chosen)
        some = some[np.argsort(group[some], kind="stable")]
        groups, first = np.unique(group[some], return_index=True)
        return cls(Transfers.joined(transfers, some), groups, first, alone[some])

    def add(self, tail_s: Float64Array, outside_s: Float64Array, during_s: Float64Array) -> None:
        """Adds the tail of the stretches to the sums of their groups, outside of syncs and during them."""
        if not self.first.size:
            return
        whole_s = np.add.reduceat(tail_s, self.first)
        alone_s = np.add.reduceat(tail_s * self.alone, self.first)
        outside_s[self.group] += alone_s
        during_s[self.group] += whole_s - alone_s


@dataclass(frozen=True)
class TailSums:
    """Seconds of the tail in each group of windows, for many lengths of the tail."""

    moving: _Grouped
    still: _Grouped
    groups: int

    @classmethod
    def of(cls, transfers: Sequence[Transfers], group: npt.NDArray[np.int64], alone: Float64Array) -> TailSums:
        """Sums for the stretches of several runs, with the group of each and the fraction of it outside of syncs."""
        moves = np.concatenate([spans.moves for spans in transfers])
        moving, still = (_Grouped.of(transfers, group, alone, chosen) for chosen in (moves, ~moves))
        return cls(moving, still, int(group.max()) + 1)

    def sums(self, length_s: float, held: float) -> tuple[Float64Array, Float64Array]:
        """Seconds outside of syncs and during them, shape (groups,) each."""
        outside_s, during_s = np.zeros(self.groups), np.zeros(self.groups)
        self.moving.add(self.moving.transfers.while_moving_s(length_s, held), outside_s, during_s)
        self.still.add(self.still.transfers.while_still_s(length_s, held), outside_s, during_s)
        return outside_s, np.maximum(during_s, 0.0)
