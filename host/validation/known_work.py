"""Databases at work with known energies: operations, the engine's background work, and the medium. SIMULATED.

Every figure is drawn at random. The families of loads are those seen on boards: steady, steps, bursts of 20 us to 1 s,
a changing frequency, a load in step with the meter's samples, humps of compaction, write-back in bursts, tails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from known_medium import drained, in_tail_s, waited_part
from known_pieces import Gridded, Paused, Piece, humped
from opjoule.attribution.windows import block_length_s
from opjoule.bench.simulation.parts import Float64Array, Steady

Generator = np.random.Generator
FAMILIES: Final = ("steady", "steps", "bursts", "frequency", "in step")
PACED: Final = "paced"
"""Family of loads that is used only on request: a client starts operations at regular intervals, on a processor that
draws part of their energy while it wakes up and falls asleep."""
ENGINES: Final = ("plain", "one thread", "two threads", "checkpoints")
NEVER: Final = 1e7
"""Factor by which operations are slower than usual while the workload pauses."""
GRID_S: Final = 0.01
AWAKE_S: Final = 150e-6
"""Longest time for which a processor is awake before or after a paced operation."""


@dataclass(frozen=True)
class Choice:
    """Properties of an experiment that are fixed; None means drawn at random."""

    mix: tuple[float, ...] | None = None
    """Shares of the kinds of operations; the first is the share of reads."""
    ratio: float | None = None
    """Energy of an update over the energy of a read."""
    locked: bool = False
    """Kinds follow each other in a fixed order, each with a fixed latency, so their energies cannot be separated."""
    engine: str | None = None
    family: str | None = None
    seconds: float = 60.0
    slow_meter: bool = False
    """Ten samples a second, which hide differences within a second."""
    design: bool = False
    """The mix changes at random from block to block."""


@dataclass(frozen=True)
class Known:
    """One run and its settle on the board's clock, which starts at 0 s, with the energy of each part."""

    start_s: float
    end_s: float
    settled_s: float
    kinds: tuple[str, ...]
    kind: npt.NDArray[np.uint8]
    begin_s: Float64Array
    """Start of each operation, sorted."""
    length_s: Float64Array
    thread: npt.NDArray[np.uint16]
    events: Mapping[str, tuple[Float64Array, Float64Array]]
    """Start and end of the events that the engine reports, by activity."""
    one_thread: bool
    write_counts: tuple[Float64Array, Float64Array]
    """Times, and bytes written to the medium by then, as the board's counters show them."""
    pieces: list[Piece]
    """Power that the board drew above idle."""
    true_j: Mapping[str, float]
    """By kind and by activity."""
    drawn: dict[str, object] = field(default_factory=dict)
    """Drawn properties of the experiment, by name."""


def work(rng: Generator, choice: Choice, start_s: float, meter_period_s: float) -> Known:
    """Draws one run."""
    end_s = start_s + choice.seconds
    engine = choice.engine or str(rng.choice(ENGINES))
    family = choice.family or str(rng.choice(FAMILIES))
    events = _events(rng, engine, start_s, end_s)
    slow, factor = _course(rng, family, events, start_s, end_s)
    made = _Operations.drawn(rng, choice, family, slow, start_s, end_s, meter_period_s)
    energy_j = made.energy_j * np.interp(made.begin_s, *factor) if factor else made.energy_j
    awake_s = rng.uniform(0.0, AWAKE_S, 2) if family == PACED else np.zeros(2)
    pieces: list[Piece] = [
        _drawn(made.begin_s[of_thread], made.length_s[of_thread], energy_j[of_thread], *awake_s.tolist())
        for of_thread in (made.thread == thread for thread in np.unique(made.thread))
    ]
    true_j = {name: float(energy_j[made.kind == at].sum()) for at, name in enumerate(made.kinds)}
    for name, piece in _background(rng, events, engine == "one thread").items():
        pieces.append(piece)
        true_j[name] = float(piece.until_j(np.array([end_s + 100.0]))[0])
    medium = _medium(rng, made, events, start_s, end_s)
    pieces += medium.pieces
    for name, of_medium_j in medium.true_j.items():
        true_j[name] = true_j.get(name, 0.0) + of_medium_j
    drawn = {"engine": engine, "family": family, "threads": int(made.thread.max()) + 1, **medium.drawn}
    return Known(
        start_s, end_s, medium.settled_s, made.kinds, made.kind, made.begin_s, made.length_s, made.thread,
        events, engine == "one thread", medium.write_counts, pieces, true_j, drawn,
    )  # fmt: skip


def _drawn(
    begin_s: Float64Array, length_s: Float64Array, energy_j: Float64Array, before_s: float, after_s: float
) -> Steady:
    """Operations of one thread, whose energy also covers some time before and after, at most half of the pause."""
    end_s = begin_s + length_s
    half_s = (begin_s[1:] - end_s[:-1]) / 2
    before = np.minimum(before_s, np.concatenate([[np.inf], half_s]))
    after = np.minimum(after_s, np.concatenate([half_s, [np.inf]]))
    return Steady(begin_s - before, end_s + after, energy_j)


@dataclass(frozen=True)
class _Operations:
    kinds: tuple[str, ...]
    kind: npt.NDArray[np.uint8]
    begin_s: Float64Array
    length_s: Float64Array
    thread: npt.NDArray[np.uint16]
    energy_j: Float64Array

    @classmethod
    def drawn(
        cls, rng: Generator, choice: Choice, family: str, slow: tuple[Float64Array, Float64Array],
        start_s: float, end_s: float, meter_period_s: float,
    ) -> _Operations:  # fmt: skip
        mix = np.array(choice.mix or rng.dirichlet(np.full(int(rng.integers(2, 4)), 2.0)))
        kinds = ("read", "update", "insert")[: mix.size]
        usual_s = np.exp(rng.uniform(np.log(60e-6), np.log(600e-6))) * np.exp(rng.uniform(-0.7, 0.7, mix.size))
        watt = rng.uniform(0.4, 1.5) * np.exp(rng.uniform(-0.5, 0.5, mix.size))
        if choice.ratio is not None:
            watt[1] = watt[0] * choice.ratio * usual_s[0] / usual_s[1]
        own_j = rng.uniform(0.0, 0.3, mix.size) * watt * usual_s
        watt -= own_j / usual_s
        spread = 0.0 if choice.locked else rng.uniform(0.2, 1.0)
        blocks = _blocks(rng, mix, usual_s, choice.seconds, meter_period_s) if choice.design else None
        parts = []
        for thread in range(int(rng.choice([1, 1, 2, 4]))):
            kind = _kinds(rng, choice, mix, int(1.1 * choice.seconds / float(mix @ usual_s)), blocks)
            work_s = usual_s[kind] * (1.0 if choice.locked else rng.gamma(1 / spread**2, spread**2, kind.size))
            between_s = rng.exponential(0.03 * float(mix @ usual_s), kind.size)
            if family == "in step":
                between_s = _in_step(rng, work_s, meter_period_s)
            if family == PACED:
                between_s = _paced(rng, work_s, float(mix @ usual_s))
            begin = np.cumsum(work_s + between_s) - work_s
            elapsed, moment_s = slow
            within = begin + work_s < elapsed[-1]
            begin_s = np.interp(begin[within], elapsed, moment_s)
            # a client pauses between operations; an operation that has begun is finished first
            slower = np.minimum(np.interp(begin_s, moment_s[:-1], np.diff(moment_s) / np.diff(elapsed)), 4.0)
            finish_s = np.minimum(begin_s + work_s[within] * slower, np.append(begin_s[1:], np.inf))
            energy_j = (own_j[kind] + watt[kind] * work_s)[within] * rng.lognormal(0, 0.15, int(within.sum()))
            threads = np.full(begin_s.size, thread, np.uint16)
            parts.append((kind[within].astype(np.uint8), begin_s, finish_s - begin_s, threads, energy_j))
        kind, begin_s, length_s, thread_of, energy_j = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(begin_s, kind="stable")
        return cls(kinds, kind[order], begin_s[order], length_s[order], thread_of[order], energy_j[order])


def _kinds(
    rng: Generator, choice: Choice, mix: Float64Array, count: int, blocks: Float64Array | None
) -> npt.NDArray[np.int64]:
    if choice.locked:
        return np.tile(np.repeat(np.arange(mix.size), np.rint(mix / mix.min()).astype(int)), count)[:count]
    if blocks is not None:
        expected = blocks.sum(axis=1)
        operations = np.maximum(np.rint(expected).astype(np.int64), 1)
        chance = np.repeat(np.cumsum(blocks / expected[:, None], axis=1), operations, axis=0)
        return (rng.random(len(chance))[:, None] > chance[:, :-1]).sum(axis=1)
    return rng.choice(mix.size, count, p=mix)


def _blocks(
    rng: Generator, mix: Float64Array, usual_s: Float64Array, seconds: float, meter_period_s: float
) -> Float64Array:
    """Operations of each kind expected in each of the loader's blocks, which draw shares of time for all threads."""
    length_s = block_length_s(meter_period_s)
    share = mix * usual_s / float(mix @ usual_s)
    drawn = rng.dirichlet(share, int(1.1 * seconds / length_s) + 1)
    return np.asarray(length_s * drawn / usual_s, np.float64)


def _in_step(rng: Generator, work_s: Float64Array, meter_period_s: float) -> Float64Array:
    """Pauses that start operations at a period near the meter's sampling period, or near a multiple or part of it."""
    beat_s = (
        meter_period_s * rng.choice([0.5, 1.0, 2.0, 3.0]) * (1 + rng.choice([0.0, 1e-4, 1e-3, 0.01]) * rng.normal())
    )
    return np.ceil(work_s / beat_s) * beat_s - work_s


def _paced(rng: Generator, work_s: Float64Array, usual_s: float) -> Float64Array:
    """Pauses after which operations start at regular intervals, each a little late."""
    beat_s = usual_s * rng.uniform(2.0, 20.0)
    late_s = rng.gamma(4.0, 10e-6, work_s.size + 1)
    return np.maximum(np.ceil(work_s / beat_s) * beat_s - work_s + np.diff(late_s), 1e-6)


def _events(rng: Generator, engine: str, start_s: float, end_s: float) -> dict[str, tuple[Float64Array, Float64Array]]:
    """Events that an engine reports: flushes of memtables and compactions, or checkpoints; each ends with a sync."""
    if engine == "plain":
        return {}
    length = end_s - start_s
    events: dict[str, tuple[Float64Array, Float64Array]] = {}
    if engine == "checkpoints":
        events["checkpoint"] = _spaced(rng, start_s, end_s, length / rng.uniform(8, 40), rng.uniform(0.05, 0.4))
    else:
        events["compaction"] = _spaced(rng, start_s, end_s, length / rng.uniform(12, 60), rng.uniform(0.1, 0.7))
        every_s = length / rng.uniform(20, 200)
        flush = _spaced(rng, start_s, end_s, every_s, rng.uniform(0.02, 0.2))
        if engine == "one thread":
            flush = _apart(*flush, *events["compaction"])
        events["flush"] = flush
    ends = [
        (begin + (finish - begin) * rng.uniform(0.85, 0.97, begin.size), finish) for begin, finish in events.values()
    ]
    events["sync"] = (
        np.concatenate([interval[0] for interval in ends]),
        np.concatenate([interval[1] for interval in ends]),
    )
    return events


def _spaced(
    rng: Generator, start_s: float, end_s: float, every_s: float, part: float
) -> tuple[Float64Array, Float64Array]:
    """Events with a mean period of every_s that take up about the share `part` of the time, never two at once."""
    period_s = every_s * rng.gamma(8, 1 / 8, int(3 * (end_s - start_s) / every_s) + 3)
    begin_s = start_s + rng.uniform(0, every_s) + np.cumsum(period_s) - period_s
    finish_s = begin_s + period_s * np.minimum(part * rng.gamma(8, 1 / 8, period_s.size), 0.95)
    kept = finish_s < end_s
    return begin_s[kept], finish_s[kept]


def _apart(
    begin_s: Float64Array, finish_s: Float64Array, outer_begin_s: Float64Array, outer_finish_s: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Keeps the events that lie wholly inside others, but not in their last fifth (their sync), or wholly outside."""
    at = np.clip(np.searchsorted(outer_begin_s, begin_s, "right") - 1, 0, None)
    limit_s = outer_begin_s[at] + 0.8 * (outer_finish_s - outer_begin_s)[at]
    inside = (begin_s >= outer_begin_s[at]) & (finish_s <= limit_s)
    following = np.append(outer_begin_s, np.inf)[np.searchsorted(outer_begin_s, begin_s, "right")]
    outside = ((begin_s >= outer_finish_s[at]) | (begin_s < outer_begin_s[0])) & (finish_s <= following)
    return begin_s[inside | outside], finish_s[inside | outside]


def _course(
    rng: Generator,
    family: str,
    events: Mapping[str, tuple[Float64Array, Float64Array]],
    start_s: float,
    end_s: float,
) -> tuple[tuple[Float64Array, Float64Array], tuple[Float64Array, Float64Array] | None]:
    """Work time as a function of the clock, and the factor of the operations' energy at each time (None: 1)."""
    grid_s = np.arange(start_s, end_s + 1e-4, 1e-4)
    slower, factor = np.ones(grid_s.size), None
    for begin_s, finish_s in events.values():
        contended = 1 + rng.uniform(0.0, 0.6)
        active = np.searchsorted(begin_s, grid_s) > np.searchsorted(np.sort(finish_s), grid_s)
        slower[active] *= contended
    if family == "frequency":
        level = _levels(rng, grid_s.size, 0.2, 10.0, rng.uniform(0.6, 1.0, 200))
        slower /= level
        factor = grid_s, level ** rng.uniform(0.3, 1.5)
    if family == "steps":
        slower[_levels(rng, grid_s.size, 0.1, 5.0, np.tile([1.0, 0.0], 400)) == 0.0] = NEVER
    if family == "bursts":
        slower[_levels(rng, grid_s.size, 1e-4, 1.0, np.tile([1.0, 0.0], 80_000)) == 0.0] = NEVER
    elapsed = np.concatenate([[0.0], np.cumsum(1e-4 / slower)])
    return (elapsed, np.append(grid_s, grid_s[-1] + 1e-4)), factor


def _levels(rng: Generator, count: int, shortest_s: float, longest_s: float, values: Float64Array) -> Float64Array:
    """Consecutive values on a grid of 100 us, each for a time uniform on a logarithmic scale."""
    lengths = np.exp(rng.uniform(np.log(shortest_s), np.log(longest_s), values.size)) * 1e4
    index = np.searchsorted(np.cumsum(lengths), np.arange(count))
    return values[np.minimum(index, values.size - 1)]


def _background(
    rng: Generator, events: Mapping[str, tuple[Float64Array, Float64Array]], one_thread: bool
) -> dict[str, Piece]:
    """Power of the engine's activities, which is zero while they wait for a sync or for a flush on the only thread."""
    pieces: dict[str, Piece] = {}
    for name, (begin_s, finish_s) in events.items():
        usual_w = rng.uniform(0.05, 0.4) if name == "sync" else rng.uniform(0.3, 1.5)
        power_w = usual_w * rng.lognormal(0, 0.1, begin_s.size)
        if name == "sync":
            pieces[name] = humped(rng, begin_s, finish_s, power_w)
            continue
        sync_s = events["sync"]
        works_s = np.array([sync_s[0][np.flatnonzero(sync_s[1] == finished_s)[0]] for finished_s in finish_s.tolist()])
        piece = humped(rng, begin_s, works_s, power_w)
        pieces[name] = Paused(piece, *events["flush"]) if name == "compaction" and one_thread else piece
    return pieces


@dataclass(frozen=True)
class _Medium:
    pieces: list[Piece]
    true_j: dict[str, float]
    write_counts: tuple[Float64Array, Float64Array]
    settled_s: float
    drawn: dict[str, object]


def _medium(
    rng: Generator,
    made: _Operations,
    events: Mapping[str, tuple[Float64Array, Float64Array]],
    start_s: float,
    end_s: float,
) -> _Medium:
    """Draws a medium to which pages are written in bursts, with or without a tail."""
    grid_s = np.arange(start_s, end_s + 60.0, GRID_S)
    dirtied = np.zeros(grid_s.size)
    writes = made.kind > 0
    per_write = rng.choice([128.0, 1024.0, 4096.0])
    at = np.minimum(((made.begin_s[writes] - start_s) / GRID_S).astype(np.int64), grid_s.size - 1)
    dirtied += np.bincount(at, minlength=grid_s.size) * per_write
    rate = rng.uniform(1.5, 6.0) * max(float(dirtied.sum()) / (end_s - start_s), 1e4)
    period = int(rng.choice([0.1, 1.0, 5.0]) / GRID_S)
    due = np.concatenate([[0.0], np.cumsum(dirtied)])[np.arange(grid_s.size) // period * period]
    counted = drained(due - due[0], rate, GRID_S)
    going = np.diff(counted, prepend=0.0)
    active_w = rng.uniform(0.1, 0.8)
    joule_per_byte = active_w / rate
    power_w = going * joule_per_byte / GRID_S
    tail_w, tail_s = np.zeros(grid_s.size), None
    if rng.random() < 0.5:
        tail_s = float(np.exp(rng.uniform(np.log(0.05), np.log(5.0))))
        busy_s = going / rate
        tail_w = in_tail_s(np.minimum(busy_s, GRID_S), GRID_S, tail_s) * rng.uniform(0.0, 1.0) / GRID_S
    at_work = np.flatnonzero((going > 0) | (tail_w > 0))
    settled_s = max(end_s, float(grid_s[at_work[-1]]) if at_work.size else end_s) + 5.0
    waited = waited_part(grid_s, *events["sync"]) if "sync" in events else np.zeros(grid_s.size)
    powers = {"write_back": power_w, "tail": tail_w}
    true_j = {name: float(power_w @ (1.0 - waited)) * GRID_S for name, power_w in powers.items()}
    true_j["sync"] = float((power_w + tail_w) @ waited) * GRID_S
    pieces: list[Piece] = [Gridded(start_s, GRID_S, power_w), Gridded(start_s, GRID_S, tail_w)]
    drawn = {"tail_s": tail_s, "every_s": period * GRID_S}
    return _Medium(pieces, true_j, (grid_s + GRID_S, counted), settled_s, drawn)
