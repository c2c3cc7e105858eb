"""Activity of the medium in each window: bytes written to it, and the tail after each read or write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opjoule.attribution.activities import SYNC, Intervals
from opjoule.attribution.counters import IN_NO_TIME, Counters, Rates, joined
from opjoule.attribution.overlap import overlap_s
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array

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
class _TailSums:
    """Seconds of the tail in each group of windows, for many lengths of the tail."""

    moving: _Grouped
    still: _Grouped
    groups: int

    @classmethod
    def of(cls, transfers: Sequence[Transfers], group: npt.NDArray[np.int64], alone: Float64Array) -> _TailSums:
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


TAILS: Final = 8
"""Number of tail lengths that are tried first."""
ROUNDS: Final = 7
"""Number of times that one on either side of the best is tried, at a distance whose logarithm halves each time."""
OTHERS: Final = 4
"""Number of equally good tail lengths whose fits give the model's uncertainty."""
TAIL_MIN_S: Final = 0.05
TAIL_MAX_S: Final = 30.0
EVENLY: Final = "evenly"
MIDDLE: Final = "middle"
"""Placement of bytes between two samples: evenly, all beside one activity, or in the middle of the possible ones.
The middle is used unless the windows show otherwise."""
HELD: Final = (0.5, 0.0, 1.0)
"""Fractions of the tail's power in pauses cut short by the next transfer. The first, in the middle of the possible
range, is used unless the windows show otherwise."""
WORTH: Final = 10.0
"""Least decrease of minus twice the log-likelihood for accepting a tail, or for accepting bytes or power at one of
the bounds."""

REFUTED: Final = 30.0
"""The same limit for rejecting another fraction of the tail's power. It is larger because residuals of neighbouring
groups are correlated, which the likelihood ignores."""
SEEN_SAMPLES: Final = 2.0
"""Shortest tail that pauses can show, in samples of the counters."""


@dataclass(frozen=True)
class MediumColumns:
    """The medium's columns of the regression, and the length of its tail."""

    written_bytes: Float64Array
    """Bytes written outside of syncs, shape (n,)."""
    tail_s: Float64Array
    """Seconds of the tail outside of syncs, shape (n,); all zero without a tail."""
    tail_length_s: float | None
    also_s: Float64Array
    """Range of additional tail seconds that the windows do not distinguish from writing, shape (2, n). A medium faster
    than any observed rate is busy for less of the time, and writes may come early or late in a sample."""
    in_syncs: Float64Array
    """Bytes written during syncs, and seconds of the tail during syncs, shape (2, n)."""

    @classmethod
    def none(cls, windows: int) -> MediumColumns:
        """Columns of a medium without known writes."""
        return cls(np.zeros(windows), np.zeros(windows), None, np.zeros((2, windows)), np.zeros((2, windows)))


@dataclass(frozen=True)
class MediumModels:
    """The model of the medium that explains the windows best, and its rivals by differing assumption."""

    best: MediumColumns
    alike: Sequence[MediumColumns] = ()
    """Models with another length of the tail."""
    placed: Sequence[MediumColumns] = ()
    """Models with bytes at other times between two samples of the counters."""
    held: Sequence[MediumColumns] = ()
    """Models with another fraction of the tail's power in pauses cut short, or another state before the runs."""
    written: bool = False
    """Whether anything was written to the medium; if not, its tails follow reads alone."""


@dataclass(frozen=True)
class MediumRun:
    """Cumulative bytes written to the medium in one run, for each placement between two samples."""

    counters: Counters
    places: Mapping[str, Float64Array]
    """shape (m,) each; the first is the default."""
    read_bytes: Float64Array
    """Bytes read from the medium between successive times, shape (m - 1,)."""
    time_s: Float64Array
    """Times at which a window ends, the counters were read, or a transfer begins or ends, shape (m,)."""
    first: npt.NDArray[np.intp]
    """Index of the time at which each window begins, shape (n,)."""
    alone: Float64Array
    """Fraction of the time outside of syncs between successive times, shape (m - 1,)."""
    busy_before: bool = False
    """Whether the medium was busy until the run began. The loader syncs just before; the sync may write no bytes."""

    @classmethod
    def of(
        cls,
        counters: Counters,
        edge_board_ns: Int64Array,
        beside: Mapping[str, Intervals] = MappingProxyType({}),
    ) -> MediumRun:
        """Cumulative bytes of one run.

        Args:
            edge_board_ns: of the windows, shape (n + 1,).
            beside: activities during which all bytes between two samples may have been written, by name.
        """
        changes_ns = counters.changes_ns
        inside = (changes_ns > edge_board_ns[0]) & (changes_ns < edge_board_ns[-1])
        moment_ns = joined(edge_board_ns, changes_ns[inside])
        places = {EVENLY: counters.at(moment_ns)}
        if beside:
            for name, intervals in beside.items():
                places[name] = counters.beside(moment_ns, intervals)
            places = {MIDDLE: np.mean(list(places.values()), axis=0), **places}
        first = np.searchsorted(moment_ns, edge_board_ns[:-1])
        alone = np.ones(moment_ns.size - 1)
        if SYNC in beside:
            waited = beside[SYNC].merged
            waited_s = overlap_s(moment_ns, waited.start_ns, waited.end_ns)
            alone = np.clip(1.0 - waited_s / (np.diff(moment_ns) * NS), 0.0, 1.0)
        read_bytes = np.diff(counters.read_at(moment_ns))
        return cls(counters, places, read_bytes, (moment_ns - moment_ns[0]) * NS, first, alone)

    @property
    def wrote(self) -> bool:
        """Whether anything was written to the medium."""
        return bool(np.ptp(next(iter(self.places.values()))))

    @property
    def idle(self) -> bool:
        """Whether nothing was written to the medium, and nothing read."""
        return not (self.wrote or self.read_bytes.any())

    def bytes_at(self, place: str) -> Float64Array:
        """Bytes between successive times, shape (m - 1,); the default placement if this run has no such one."""
        return np.diff(self.places.get(place, next(iter(self.places.values()))))

    def written(self, place: str) -> Float64Array:
        """Bytes of each window written outside of syncs, shape (n,)."""
        alone = np.where(self.alone < 1.0, 0.0, 1.0) if place == SYNC else self.alone
        return self._windows(self.bytes_at(place) * alone)

    def synced(self, place: str) -> Float64Array:
        """Bytes of each window written during syncs, shape (n,)."""
        return self._windows(self.bytes_at(place)) - self.written(place)

    def transfers(self, place: str, rates: Rates) -> Transfers:
        """Stretches with and without bytes, for a medium that is busy at the given rates."""
        written_bytes = self.bytes_at(place)
        busy_s = rates.busy_s(written_bytes, self.read_bytes)
        moved_bytes, sampled_s = written_bytes + self.read_bytes, self.counters.sampled_s
        return Transfers.of(moved_bytes, busy_s, self.time_s, sampled_s, busy_before=self.busy_before)

    def tail_s(self, stretches_s: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Seconds of the tail in each window, outside of syncs and during them, shape (n,) each."""
        return self._windows(stretches_s * self.alone), self._windows(stretches_s * (1.0 - self.alone))

    @property
    def window(self) -> npt.NDArray[np.intp]:
        """Window of each stretch between successive times, shape (m - 1,)."""
        return np.repeat(np.arange(self.first.size), np.diff(self.first, append=self.alone.size))

    def _windows(self, of_moments: Float64Array) -> Float64Array:
        return np.asarray(np.add.reduceat(of_moments, self.first), np.float64)


def medium_models(
    runs: Sequence[MediumRun], deviance: Callable[[list[Float64Array]], float], group: npt.NDArray[np.int64]
) -> MediumModels:
    """Models of the medium's activity in each window; the disagreement of the rivals is their uncertainty.

    Args:
        deviance: minus twice the log-likelihood of the windows with columns of the medium, given by their sums over
            each group.
        group: number of each window's group, of all runs' windows, from 0.
    """
    busy = _Search([replace(run, busy_before=True) for run in runs], deviance, group)
    if all(run.idle for run in runs):  # a medium that was at rest has no tail
        return busy.models()
    return _Search(runs, deviance, group).better_of(busy)


class _Tried(NamedTuple):
    """A model of the medium, and the deviance of the windows, with penalties for its assumptions."""

    value: float
    tail_length_s: float
    """0 without a tail."""
    place: str
    held: float


@dataclass(frozen=True)
class _Search:
    """Search for the tail's length for each assumption: a coarse grid, then ever finer around the best."""

    runs: Sequence[MediumRun]
    deviance: Callable[[list[Float64Array]], float]
    group: npt.NDArray[np.int64]
    tried: list[_Tried] = field(default_factory=list)
    values: dict[_Tried, float] = field(default_factory=dict)
    """Model without its value -> its value."""

    @property
    def places(self) -> tuple[str, ...]:
        """Placements of bytes between two samples; the first is the default."""
        most = sorted((tuple(run.places) for run in self.runs), key=len, reverse=True)
        return tuple(dict.fromkeys(name for places in most for name in places))

    @property
    def sampled_s(self) -> float:
        """Distance of two samples of the counters."""
        return max(run.counters.sampled_s for run in self.runs)

    def better_of(self, other: _Search) -> MediumModels:
        """The models of this search, or those of another one if the windows clearly prefer it.

        Both differ in the medium's state before the runs. Unless the windows clearly reject the other state, the best
        model with that state is a rival.
        """
        place, held, length_s = self.best.place, self.best.held, self.best.tail_length_s
        rival = other._of(place, held, [length_s]) if length_s else other._length(place, held)
        if rival.value < self.best.value - WORTH:
            return other.models()
        models = self.models()
        refuted = rival.value > self.best.value + REFUTED
        return models if refuted else replace(models, held=[*models.held, other._columns(rival)])

    def models(self) -> MediumModels:
        """The best model, and its rivals.

        The placement of bytes between two samples is unobserved: its rivals count whatever their likelihood. The power
        in short pauses is observed if some pauses are short and some are not: another fraction of the tail's power is
        then a rival unless the windows clearly reject it. If the tail is hardly longer than a sample, it is always a
        rival.
        """
        best = self.best
        tried = sorted(self.tried, key=self._without_worth)
        limit = self._without_worth(best) + WORTH
        likely = [model for model in tried if self._without_worth(model) <= limit and model != best]
        alike = [model for model in likely if (model.place, model.held) == (best.place, best.held)]
        placed = {model.place: model for model in reversed(tried) if model.place != best.place}
        seen = best.tail_length_s > SEEN_SAMPLES * self.sampled_s
        refuted = self._without_worth(best) + (REFUTED if seen else np.inf)
        here = [model for model in tried if model.place == best.place and self._without_worth(model) <= refuted]
        held = {model.held: model for model in reversed(here) if model.held != best.held}
        return MediumModels(
            self._columns(best),
            [self._columns(model) for model in alike[:: max(len(alike) // OTHERS, 1)]],
            [self._columns(model) for model in placed.values()],
            [self._columns(model) for model in held.values()],
            any(run.wrote for run in self.runs),
        )

    @cached_property
    def best(self) -> _Tried:
        """The model that explains the windows best."""
        place, *others = self.places
        best = min(self._of(place, HELD[0], [0.0]), *(self._length(place, held) for held in HELD))
        for other in others:
            without = self._of(other, best.held, [0.0])
            best = min(best, without, self._length(other, best.held, beside_s=best.tail_length_s))
        if best.place != place:
            for held in HELD:
                best = min(best, self._length(best.place, held, beside_s=best.tail_length_s))
        return best

    def _length(self, place: str, held: float, *, beside_s: float = 0.0) -> _Tried:
        """The best length of the tail, or the best near a given length."""
        lasted_s = max(float(np.ptp(run.time_s)) for run in self.runs)
        longest_s = max(min(lasted_s / 2, TAIL_MAX_S), 1.01 * TAIL_MIN_S)
        step = (longest_s / TAIL_MIN_S) ** (1 / TAILS)
        lengths_s = [beside_s] if beside_s else np.geomspace(TAIL_MIN_S, longest_s, TAILS + 1).tolist()
        best = self._of(place, held, lengths_s)
        for _ in range(ROUNDS):
            step **= 0.5
            beside = np.clip(best.tail_length_s * np.array([1 / step, step]), TAIL_MIN_S, longest_s)
            best = min(best, self._of(place, held, beside.tolist()))
        return best

    def _of(self, place: str, held: float, lengths_s: Sequence[float]) -> _Tried:
        made = [self._model(place, held, length_s) for length_s in lengths_s]
        self.tried.extend(made)
        return min(made)

    def _model(self, place: str, held: float, length_s: float) -> _Tried:
        """The model with a length of the tail; rounds of the search share lengths, whose deviance is computed once."""
        model = _Tried(0.0, length_s, place, held)
        if model not in self.values:
            written, synced = self._sums[place]
            tail = self._tails[place].sums(length_s, held) if length_s else ()
            self.values[model] = self.deviance([written, *tail, synced]) + self._worth(model)
        return model._replace(value=self.values[model])

    def _columns(self, tried: _Tried) -> MediumColumns:
        written_bytes, synced_bytes = self._written[tried.place], self._synced[tried.place]
        if not tried.tail_length_s:
            none = MediumColumns.none(written_bytes.size)
            return replace(none, written_bytes=written_bytes, in_syncs=np.stack([synced_bytes, none.tail_s]))
        slow, quick = self._transfers[tried.place], self._transfers_at(tried.place, IN_NO_TIME)
        tail_s, synced_s = self._tail_s(slow, tried.tail_length_s, tried.held)
        in_syncs = np.stack([synced_bytes, synced_s])
        least_s, _ = self._tail_s(slow, tried.tail_length_s, tried.held, 0.0)
        most_s, _ = self._tail_s(quick, tried.tail_length_s, tried.held, 1.0)
        return MediumColumns(written_bytes, tail_s, tried.tail_length_s, np.stack([least_s, most_s]) - tail_s, in_syncs)

    @cached_property
    def _written(self) -> dict[str, Float64Array]:
        """Bytes of each window written outside of syncs, for each placement."""
        return {place: np.concatenate([run.written(place) for run in self.runs]) for place in self.places}

    @cached_property
    def _synced(self) -> dict[str, Float64Array]:
        """Bytes of each window written during syncs, for each placement."""
        return {place: np.concatenate([run.synced(place) for run in self.runs]) for place in self.places}

    @cached_property
    def _transfers(self) -> dict[str, list[Transfers]]:
        """Stretches of each run with and without bytes, at the steepest observed rates, for each placement."""
        return {place: self._transfers_at(place, self._steepest) for place in self.places}

    @property
    def _steepest(self) -> Rates:
        return Rates(*np.max([run.counters.rates for run in self.runs], axis=0).tolist())

    def _transfers_at(self, place: str, rates: Rates) -> list[Transfers]:
        return [run.transfers(place, rates) for run in self.runs]

    def _tail_s(
        self, transfers: Sequence[Transfers], length_s: float, held: float, opening: float = 0.5
    ) -> tuple[Float64Array, Float64Array]:
        """Seconds of the tail in each window, outside of syncs and during them, shape (n,) each."""
        pairs = zip(self.runs, transfers, strict=True)
        by_run = [run.tail_s(spans.tail_s(length_s, held, opening)) for run, spans in pairs]
        outside_s, during_s = zip(*by_run, strict=True)
        return np.concatenate(outside_s), np.concatenate(during_s)

    @cached_property
    def _tails(self) -> dict[str, _TailSums]:
        """Tails by group of windows, at the steepest observed rates, for each placement."""
        ends = np.cumsum([run.first.size for run in self.runs])[:-1]
        by_run = zip(np.split(self.group, ends), self.runs, strict=True)
        group = np.concatenate([label[run.window] for label, run in by_run])
        alone = np.concatenate([run.alone for run in self.runs])
        return {place: _TailSums.of(self._transfers[place], group, alone) for place in self.places}

    @cached_property
    def _sums(self) -> dict[str, tuple[Float64Array, Float64Array]]:
        """Bytes of each group of windows written outside of syncs, and during them, for each placement."""
        return {
            place: (_summed(self.group, self._written[place]), _summed(self.group, self._synced[place]))
            for place in self.places
        }

    def _worth(self, tried: _Tried) -> float:
        unusual_place, unusual_power = tried.place != self.places[0], tried.held != HELD[0]
        return WORTH * ((tried.tail_length_s > 0.0) + unusual_place + unusual_power)

    def _without_worth(self, tried: _Tried) -> float:
        return tried.value - self._worth(tried)


def _summed(group: npt.NDArray[np.int64], column: Float64Array) -> Float64Array:
    """Sum of a column over each group."""
    return np.asarray(np.bincount(group, column), np.float64)
