"""Compares what operations cost all told with their true cost, in whole measurements of drawn power. SIMULATED.

    host/measure.py --db leveldb --device rpi4 --simulate --out /tmp/leveldb
    .venv/bin/python host/validation/all_told_trials.py /tmp/leveldb --trials 25

The times of a measurement come from a record: its phases, operations, background work and written bytes. Each trial
draws the power of every part (known_engine.py), of the loader itself and of the medium, which writes and has its tail
at times of its own; then a meter, a board's idle power and clocks. The measurement is evaluated as every other. Exit
status 1 if fewer than 93 of 100 intervals contain the true cost, or fewer than 95 of 100 costs have an interval.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

os.environ.setdefault("OMP_NUM_THREADS", "1")  # trials run side by side

from known_engine import (
    START_S,
    WAKES_S,
    Timeline,
    drawn_background,
    drawn_medium,
    drawn_operations,
    moved,
    seconds,
)
from known_meter import BOARD_NS, KINDS, measured
from known_pieces import Piece, Steady, bursts, wander
from opjoule.base.notices import Notice
from opjoule.base.units import exact
from opjoule.bench.simulation.parts import Float64Array, PartPowers
from opjoule.energy.operations.board_files import read_system
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.operations.oplog import read_operation_log
from opjoule.runs.evaluation.all_told import by_operation, write_costs
from opjoule.runs.evaluation.evidence import BoardEvents, read_logs
from opjoule.runs.evaluation.mixes import WriteCosts, WrittenRun
from opjoule.runs.evaluation.quantities.definition import ALL_TOLD
from opjoule.runs.evaluation.quantities.operations import READS
from opjoule.runs.evaluation.repeat_energy import HARNESS
from opjoule.runs.evaluation.summary import AlignedRun, mixed_runs, repeats_of
from opjoule.runs.record.phases import MIX, Cycle, Phase, Role, worked_repeats
from opjoule.runs.record.run import Run
from opjoule.runs.record.run_record import RunRecord

HELD_MIN: Final = 0.93
STATED_MIN: Final = 0.95
DRAWS_MAX: Final = 200
"""Media that are drawn until one rests in every idle phase, as it does on a board, where settle waits for that."""
AT_REST_J: Final = 1e-6


@dataclass(frozen=True)
class Measured:
    """The times of a measurement, moved so that its first idle phase begins START_S after BOARD_NS."""

    run: Run
    phases: Sequence[Phase]
    timeline: Timeline
    """From the first idle phase to the end of the last phase."""
    operations: Sequence[OperationTable]
    """Of each repeat."""
    of_mixes: Sequence[OperationTable]
    """Of each run in another mix."""

    @classmethod
    def read(cls, directory: Path) -> Measured:
        """Raises: ValueError: the record has no run that ended with idle phases around it, or no harness."""
        record = RunRecord.open(directory)
        phases = [phase for phase in record.run.phases if phase.end_board_ns is not None]
        first = next((phase for phase in phases if phase.role is Role.BASELINE and phase.name != "rest"), None)
        if first is None or not worked_repeats(phases) or HARNESS not in {phase.name for phase in phases}:
            raise ValueError(f"{directory}: not a measurement with idle phases, runs and a harness")
        later_ns = BOARD_NS + round(START_S * 1e9) - first.start_board_ns
        kept = [
            replace(
                phase,
                start_board_ns=phase.start_board_ns + later_ns,
                end_board_ns=phase.end_board_ns + later_ns,
            )
            for phase in phases
            if phase.start_board_ns >= first.start_board_ns
        ]
        events = BoardEvents.of(record).table
        logged = read_logs(record, events)
        if logged.withheld:
            raise ValueError(f"{directory}: {logged.withheld}")
        operations = replace(logged.table, board_ns=logged.table.board_ns + later_ns)
        events = moved(events, ("board_ns", "end_board_ns"), later_ns)
        events = events.filter(pa.array(events["board_ns"].to_numpy() >= kept[0].start_board_ns))
        samples = pa.concat_tables(map(read_system, record.raw_files("*.system.csv"))).sort_by("board_ns")
        worked = [
            operations.started_in(phase.start_board_ns, phase.end_board_ns) for phase in kept if phase.role is Role.WORK
        ]
        mixed = [
            read_operation_log(record.intact(f"raw/{MIX}-{number}.oplog")).operations.sorted()
            for number in worked_repeats(kept, Role.MIX)
        ]
        mixed = [replace(table, board_ns=table.board_ns + later_ns) for table in mixed]
        whole = OperationTable.concatenate([*worked, *mixed]).sorted()
        run_s = (kept[-1].end_board_ns - kept[0].start_board_ns) * 1e-9
        samples = moved(samples, ("board_ns",), later_ns)
        timeline = Timeline(record.run.asked.db or "", whole, events, samples, run_s)
        return cls(record.run, kept, timeline, worked, mixed)

    @property
    def idles(self) -> Iterator[Phase]:
        """The idle phases."""
        return (phase for phase in self.phases if phase.role is Role.BASELINE)

    @property
    def cycles(self) -> list[Cycle]:
        """The repeats."""
        return self._cycles(Role.WORK)

    @property
    def mixes(self) -> list[Cycle]:
        """The runs in other mixes."""
        return self._cycles(Role.MIX)

    def _cycles(self, role: Role) -> list[Cycle]:
        cycles = [Cycle.of(self.phases, number) for number in worked_repeats(self.phases, role)]
        return [cycle for cycle in cycles if cycle]


@dataclass(frozen=True)
class DrawnRecord:
    """What the evaluation reads of a record besides trace, phases, operations and events."""

    run: Run
    samples: Path
    """The board's samples of all phases, with the counters of the drawn medium."""

    def intact(self, name: str) -> Path:
        """The samples, whatever the repeat."""
        assert name.endswith(".system.csv"), name
        return self.samples

    def add_notices(self, *notices: Notice) -> None:
        """Raises: ValueError: there is one; a drawn measurement has no faults."""
        if notices:
            raise ValueError(notices[0].text)


@dataclass(frozen=True)
class Cost:
    """What an operation of one kind costs all told [J]."""

    kind: str
    true: float
    value: float | None
    u: float | None

    @property
    def holds(self) -> bool:
        """Whether the interval contains the true cost."""
        return self.value is not None and self.u is not None and abs(self.value - self.true) <= self.u


def trial(measured_at: Measured, seed: int) -> list[Cost]:
    """Draws all powers and a meter, evaluates, and compares."""
    rng = np.random.default_rng(seed)
    timeline = measured_at.timeline
    core_w = float(rng.uniform(0.5, 2.0))
    control = measured_at.run.loader[f"{HARNESS}-1"]
    harness_j = core_w * (control.cpu_s or 0.0) / control.operations  # the loader's own work on an operation
    kinds = timeline.operations.counts()
    powers = PartPowers.draw(rng, kinds, timeline.activities, core_w)
    pieces: list[Piece] = []
    own_j: list[Mapping[str, float]] = []
    for operations in (*measured_at.operations, *measured_at.of_mixes):
        at = replace(timeline, operations=operations)
        of_run, true_j = drawn_operations(rng, at, powers, float(rng.uniform(0.0, WAKES_S)), harness_j)
        pieces += of_run
        own_j.append(true_j)
    medium, counters = _medium(rng, measured_at)
    pieces += [*drawn_background(rng, timeline, powers).values(), *medium]
    harness = next(phase for phase in measured_at.phases if phase.name == HARNESS)
    begin_s, end_s = seconds(np.array([harness.start_board_ns, harness.end_board_ns]))
    pieces.append(Steady(np.array([begin_s]), np.array([end_s]), np.array([harness_j * control.operations])))
    entries = _evaluated(rng, measured_at, pieces, counters)
    return _costs(measured_at, pieces, own_j, entries)


def _medium(rng: np.random.Generator, measured_at: Measured) -> tuple[list[Piece], pa.Table]:
    """A medium that rests in the idle phases, and the board's samples with its counters."""
    edges_s = np.array([seconds(np.array([idle.start_board_ns, idle.end_board_ns])) for idle in measured_at.idles])
    for _ in range(DRAWS_MAX):
        pieces, _, course, _ = drawn_medium(rng, measured_at.timeline, late=False, reads_per_s=0.0)
        idle_j = sum(np.diff(piece.until_j(edges_s.ravel()).reshape(edges_s.shape)).sum() for piece in pieces)
        if idle_j < AT_REST_J:
            return pieces, measured_at.timeline.seen(course.written_bytes, course.read_bytes)
    raise ValueError("no drawn medium rests in the idle phases")


def _evaluated(
    rng: np.random.Generator, measured_at: Measured, pieces: Sequence[Piece], samples: pa.Table
) -> Mapping[str, Any]:
    """`by_operation` of the result."""
    end_s = float(seconds(np.array([measured_at.phases[-1].end_board_ns]))[0]) + 1.0
    idle: list[Piece] = [
        wander(rng, end_s + 1, rng.uniform(1.5, 3.5), 10 ** rng.uniform(-3, -2)),
        bursts(rng, end_s + 1, rng.uniform(1, 10), 10 ** rng.uniform(-3, -1.7)),
    ]
    aligned = measured(rng, KINDS[int(rng.integers(len(KINDS)))], [*idle, *pieces], end_s)
    with tempfile.TemporaryDirectory(prefix="all-told-") as folder:
        path = Path(folder) / "samples.csv"
        with path.open("wb") as sink:
            sink.write(",".join(samples.column_names).encode() + b"\n")
            pyarrow.csv.write_csv(samples, sink, pyarrow.csv.WriteOptions(include_header=False))
        parts: Any = AlignedRun(
            DrawnRecord(measured_at.run, path),  # type: ignore[arg-type]
            measured_at.phases,
            aligned,
            None,  # type: ignore[arg-type]
            measured_at.timeline.operations,
            4,
            measured_at.timeline.events,
        )
        repeats = repeats_of(parts, worked_repeats(measured_at.phases))
        return by_operation(repeats, write_costs(repeats, mixed_runs(parts)))


def _costs(
    measured_at: Measured, pieces: Sequence[Piece], own_j: Sequence[Mapping[str, float]], entries: Mapping[str, Any]
) -> list[Cost]:
    """Stated and true costs.

    Of several kinds that write, the true cost is what an operation draws while it is carried out and its part of the
    rest, which the equations of the runs in other mixes divide exactly; without such runs they are left out.
    """
    counts = OperationTable.concatenate(measured_at.operations).counts()
    writing = [kind for kind in counts if kind not in READS]
    repeats, mixes = len(measured_at.operations), len(measured_at.of_mixes)
    whole_j = [*_wholes_j(measured_at.cycles, pieces), *_wholes_j(measured_at.mixes, pieces)]
    each_j = {kind: sum(of.get(kind, 0.0) for of in own_j[:repeats]) / count for kind, count in counts.items()}
    true_j = {kind: each_j[kind] for kind in counts if kind in READS}
    if len(writing) == 1:
        read_j = sum(true_j[kind] * counts[kind] for kind in true_j)
        true_j[writing[0]] = (sum(whole_j[:repeats]) - read_j) / counts[writing[0]]
    elif mixes:
        rests = [
            WrittenRun(
                {kind: count for kind, count in table.counts().items() if kind in writing},
                exact(run_j - sum(of.values()), "J"),
            )
            for table, run_j, of in zip((*measured_at.operations, *measured_at.of_mixes), whole_j, own_j, strict=True)
        ]
        later = WriteCosts.of(rests[:repeats], rests[repeats:])
        assert later, "the mixes differ"
        true_j |= {kind: each_j[kind] + later_j for kind, later_j in zip(later.kinds, later.cost_j, strict=True)}
    made = []
    for kind, energy_j in true_j.items():
        stated = entries[kind][ALL_TOLD]
        made.append(Cost(kind, float(energy_j), getattr(stated, "value", None), getattr(stated, "u", None)))
    return made


def _wholes_j(cycles: Sequence[Cycle], pieces: Sequence[Piece]) -> list[float]:
    """True energy of run and settle of each cycle [J]."""
    edges_s: Float64Array = np.array(
        [seconds(np.array([cycle.work.start_board_ns, (cycle.drain or cycle.work).end_board_ns])) for cycle in cycles]
    )
    if not cycles:
        return []
    parts_j = [np.diff(piece.until_j(edges_s.ravel()).reshape(edges_s.shape)).ravel() for piece in pieces]
    return [float(of_run) for of_run in sum(parts_j)]


def row(about: str, costs: Sequence[Cost]) -> str:
    """Row of the table."""
    stated = [cost for cost in costs if cost.u is not None]
    cells = [about, f"{len(stated)} of {len(costs)}", "", "", "", ""]
    if stated:
        errors = [((cost.value or 0.0) - cost.true) / cost.true for cost in stated]
        held = sum(cost.holds for cost in stated)
        width = median((cost.u or 0.0) / cost.true for cost in stated)
        cells[2:] = [
            f"{100 * held / len(stated):.1f} of 100",
            f"±{100 * width:.2g} %",
            f"{100 * median(map(abs, errors)):.2g} %",
            f"{100 * median(errors):+.2g} %",
        ]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Prints a table; exit status 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    parser.add_argument("--trials", type=int, default=25, help="trials of each record")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first trial")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    print("SIMULATED\n| record, kind | stated | held | median width | median error | median of signed errors |")
    print("|---|---|---|---|---|---|")
    everything: list[Cost] = []
    for number, directory in enumerate(options.records):
        at = Measured.read(directory)
        first = options.seed + number * options.trials
        with ProcessPoolExecutor(options.jobs) as pool:
            made = list(pool.map(partial(trial, at), range(first, first + options.trials)))
        costs = [cost for some in made for cost in some]
        everything += costs
        for kind in dict.fromkeys(cost.kind for cost in costs):
            print(row(f"{directory.name}, {kind}", [cost for cost in costs if cost.kind == kind]), flush=True)
    for about, chosen in (
        ("all reads", [cost for cost in everything if cost.kind in READS]),
        ("all that write", [cost for cost in everything if cost.kind not in READS]),
        ("all", everything),
    ):
        print(row(about, chosen))
    stated = [cost for cost in everything if cost.u is not None]
    held = sum(cost.holds for cost in stated)
    return 0 if held >= HELD_MIN * len(stated) and len(stated) >= STATED_MIN * len(everything) else 1


if __name__ == "__main__":
    sys.exit(main())
