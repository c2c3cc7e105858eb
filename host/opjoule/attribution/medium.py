"""Models of the medium's activity in each window: bytes written to it, and its tail, whose length is searched."""

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
from opjoule.attribution.tails import TailSums, Transfers
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

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
    def _tails(self) -> dict[str, TailSums]:
        """Tails by group of windows, at the steepest observed rates, for each placement."""
        ends = np.cumsum([run.first.size for run in self.runs])[:-1]
        by_run = zip(np.split(self.group, ends), self.runs, strict=True)
        group = np.concatenate([label[run.window] for label, run in by_run])
        alone = np.concatenate([run.alone for run in self.runs])
        return {place: TailSums.of(self._transfers[place], group, alone) for place in self.places}

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
