"""What the storage medium did in each window: bytes that went to it, and the tail that follows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opjoule.attribution.activities import Intervals
from opjoule.attribution.counters import Counters, joined
from opjoule.attribution.tail import Writing
from opjoule.energy.step_integral import NS
from opjoule.trace.power_trace import Float64Array, Int64Array

TAILS: Final = 8
"""Tail lengths that are tried first."""
FINE: Final = 4
"""Values that are tried on either side of the best, closer in each round."""
ROUNDS: Final = 4
OTHERS: Final = 4
"""Tail lengths as good as the best whose fits show how much rests on them."""
TAIL_MIN_S: Final = 0.05
TAIL_MAX_S: Final = 30.0
EVENLY: Final = "evenly"
MIDDLE: Final = "middle"
"""Where bytes are placed between two samples: evenly, all beside one activity, or in the middle of those that can be,
which is taken unless the windows say otherwise."""
HELD: Final = (0.5, 0.0, 1.0)
"""Parts of the tail's power that are tried for pauses which the next write cuts short. The first, in the middle of what
can be, is taken unless the windows say otherwise."""
WORTH: Final = 10.0
"""A tail, or bytes or power at one of the bounds, are believed where that lowers minus twice the logarithm of the
likelihood by this, or more."""

REFUTED: Final = 30.0
"""The same for another part of the tail's power to be no rival any more. It is more, for what a fit leaves goes on from
one group of windows to the next, which the likelihood does not know."""
SEEN_SAMPLES: Final = 2.0
"""Samples of the counters that a tail lasts at least for pauses to show it."""


@dataclass(frozen=True)
class MediumColumns:
    """What the medium did in each window, and the length of the tail that says so."""

    written_bytes: Float64Array
    """shape (n,)"""
    tail_s: Float64Array
    """Seconds of the tail, shape (n,); zeros: it has no tail."""
    tail_length_s: float | None
    also_s: tuple[float, float] = (0.0, 0.0)
    """Seconds of the tail besides, at least and at most, that no window tells from the writing itself: a medium that is
    quicker than any rate that was seen is busy for less of the time, and writes may come early or late in a sample."""

    @classmethod
    def none(cls, windows: int) -> MediumColumns:
        """Columns of a medium to which nothing is known to have gone."""
        return cls(np.zeros(windows), np.zeros(windows), None)


@dataclass(frozen=True)
class MediumModels:
    """The model of the medium that explains the windows best, and its rivals by what they assume otherwise."""

    best: MediumColumns
    alike: Sequence[MediumColumns] = ()
    """Tails of another length."""
    placed: Sequence[MediumColumns] = ()
    """Bytes went at another moment between two samples of the counters."""
    held: Sequence[MediumColumns] = ()
    """The medium draws another part of its tail's power in pauses that are cut short."""

    @property
    def rivals(self) -> tuple[MediumColumns, ...]:
        """All but the best."""
        return (*self.alike, *self.placed, *self.held)


def medium_models(
    counters: Counters,
    edge_board_ns: Int64Array,
    unlikely: Callable[[list[Float64Array]], float],
    beside: Mapping[str, Intervals] = MappingProxyType({}),
) -> MediumModels:
    """What the medium may have done in each window. How far the energies of rivals disagree is the model's uncertainty.

    Args:
        edge_board_ns: of the windows, shape (n + 1,).
        unlikely: minus twice the logarithm of the windows' likelihood with some columns of the medium.
        beside: activities beside which all that went between two samples may have gone, by name.
    """
    read_ns = counters.board_ns[
        (counters.board_ns > edge_board_ns[0]) & (counters.board_ns < edge_board_ns[-1])
    ]
    moment_ns = joined(edge_board_ns, read_ns)
    first = np.searchsorted(moment_ns, edge_board_ns[:-1])
    written = counters.at(moment_ns)
    if written[-1] <= written[0]:
        return MediumModels(MediumColumns.none(first.size))
    places = {EVENLY: written}
    if beside:
        ends = places | {name: counters.beside(moment_ns, of) for name, of in beside.items()}
        places = {MIDDLE: np.mean(list(ends.values()), axis=0), **ends}
    search = _Search(places, (moment_ns - moment_ns[0]) * NS, first, unlikely, counters)
    return search.models()


class _Tried(NamedTuple):
    """A model of the medium, and how unlikely the windows are with it, what its assumptions must be worth included."""

    value: float
    tail_length_s: float
    """0: there is none."""
    place: str
    held: float


@dataclass(frozen=True)
class _Search:
    """The tail's length by a coarse grid, then ever finer around the best, for each assumption."""

    places: Mapping[str, Float64Array]
    """Bytes by each moment at which a window ends or the counters were read, shape (m,), by where they are
    placed; the first needs no proof."""
    time_s: Float64Array
    """shape (m,)"""
    first: npt.NDArray[np.intp]
    """The moment at which each window begins, shape (n,)."""
    unlikely: Callable[[list[Float64Array]], float]
    counters: Counters
    tried: list[_Tried] = field(default_factory=list)

    def models(self) -> MediumModels:
        """The best model, and its rivals.

        Where bytes went between two samples was not seen: such rivals count however likely they are. What the medium
        draws in pauses that are cut short shows where such pauses come and go: another part of the tail's power is a
        rival unless the windows speak clearly against it, or always, where the tail is hardly longer than a sample.
        """
        best = self._best()
        tried = sorted(self.tried, key=self._without_worth)
        limit = self._without_worth(best) + WORTH
        likely = [each for each in tried if self._without_worth(each) <= limit and each != best]
        alike = [each for each in likely if (each.place, each.held) == (best.place, best.held)]
        placed = {each.place: each for each in reversed(tried) if each.place != best.place}
        seen = best.tail_length_s > SEEN_SAMPLES * self.counters.sampled_s
        refuted = self._without_worth(best) + (REFUTED if seen else np.inf)
        here = [each for each in tried if each.place == best.place and self._without_worth(each) <= refuted]
        held = {each.held: each for each in reversed(here) if each.held != best.held}
        return MediumModels(
            self._columns(best),
            [self._columns(each) for each in alike[:: max(len(alike) // OTHERS, 1)]],
            [self._columns(each) for each in placed.values()],
            [self._columns(each) for each in held.values()],
        )

    def _best(self) -> _Tried:
        place = next(iter(self.places))
        found = min(self._of(place, HELD[0], [0.0]), *(self._length(place, held) for held in HELD))
        for other in list(self.places)[1:]:
            without = self._of(other, found.held, [0.0])
            found = min(found, without, self._length(other, found.held, beside_s=found.tail_length_s))
        if found.place != place:
            for held in HELD:
                found = min(found, self._length(found.place, held, beside_s=found.tail_length_s))
        return found

    def _length(self, place: str, held: float, *, beside_s: float = 0.0) -> _Tried:
        """The best length of the tail, or the best beside one that is known."""
        longest_s = max(min(float(np.ptp(self.time_s)) / 2, TAIL_MAX_S), 1.01 * TAIL_MIN_S)
        step = (longest_s / TAIL_MIN_S) ** (1 / TAILS)
        lengths_s = [beside_s] if beside_s else np.geomspace(TAIL_MIN_S, longest_s, TAILS + 1).tolist()
        found = self._of(place, held, lengths_s)
        for _ in range(ROUNDS):
            nearer_s = found.tail_length_s * np.geomspace(1 / step, step, 2 * FINE + 1)
            within_s = np.unique(np.clip(nearer_s, TAIL_MIN_S, longest_s))
            found, step = min(found, self._of(place, held, within_s.tolist())), step ** (1 / FINE)
        return found

    def _of(self, place: str, held: float, lengths_s: Sequence[float]) -> _Tried:
        """The best of some lengths."""
        own = [np.add.reduceat(np.diff(self.places[place]), self.first)]
        writing = self._writing(place, self.counters.steepest_bytes_per_s)
        made = []
        for length_s in lengths_s:
            tail = [np.add.reduceat(writing.tail_s(length_s, held), self.first)] if length_s else []
            found = _Tried(0.0, length_s, place, held)
            made.append(found._replace(value=self.unlikely([*own, *tail]) + self._worth(found)))
        self.tried.extend(made)
        return min(made)

    def _columns(self, tried: _Tried) -> MediumColumns:
        written = np.add.reduceat(np.diff(self.places[tried.place]), self.first)
        if not tried.tail_length_s:
            return MediumColumns(written, np.zeros(self.first.size), None)
        slow = self._writing(tried.place, self.counters.steepest_bytes_per_s)
        quick = self._writing(tried.place, np.inf)
        each_s = slow.tail_s(tried.tail_length_s, tried.held)
        least_s = float(slow.tail_s(tried.tail_length_s, tried.held, 0.0).sum() - each_s.sum())
        most_s = float(quick.tail_s(tried.tail_length_s, tried.held, 1.0).sum() - each_s.sum())
        tail_s = np.add.reduceat(each_s, self.first)
        return MediumColumns(written, tail_s, tried.tail_length_s, (least_s, most_s))

    def _writing(self, place: str, bytes_per_s: float) -> Writing:
        return Writing.of(np.diff(self.places[place]), self.time_s, bytes_per_s, self.counters.sampled_s)

    def _worth(self, tried: _Tried) -> float:
        unusual_place, unusual_power = tried.place != next(iter(self.places)), tried.held != HELD[0]
        return WORTH * ((tried.tail_length_s > 0.0) + unusual_place + unusual_power)

    def _without_worth(self, tried: _Tried) -> float:
        return tried.value - self._worth(tried)
