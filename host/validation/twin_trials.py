"""Counts how often the intervals of `measure.py twin --fit` contain the true values. No rig and no engine runs.

SIMULATED. Each trial draws a board, a medium, a supply and a meter's errors. The board does the work that
`measure.py twin` asks for (cores, writes, rest, syncs, reads), and the twin is fitted to the simulated readings of
counters and meter.

    .venv/bin/python host/validation/twin_trials.py --trials 100 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from opjoule.attribution.activities import Intervals
from opjoule.bench.simulation.fitting.fit import FittedTwin, fit_twin
from opjoule.bench.simulation.fitting.recorded import Recorded, signature_levels, windows_of
from opjoule.bench.simulation.medium_work import MediumCourse, MediumMode, MediumStretch
from opjoule.bench.simulation.power_model import BoardModel, MediumModel, PowerModel, Supply
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.trace.supply_line import BusReadings
from opjoule.runs.record.phases import Phase, Role

STEP_NS = 1_000_000
SAMPLE_NS = 100_000_000
IDLE_S = 6.0
EACH_S = 3.0
SYNCS = 60
SYNC_BYTES = 16_384
SENSOR = ErrorBounds(
    gain_errors_max={"shunt": 0.01, "current": 0.005, "voltage": 0.005},
    current_offset_max_a=0.002,
    current_step_a=1e-4,
    voltage_step_v=0.004,
    current_max_a=3.2,
    seen_fraction=1.0,
    clock_error_max=0.008,
)
"""An INA219 on a shunt of 1 %, as delivered."""


@dataclass(frozen=True)
class Truth:
    """True properties of one trial's board, medium and supply."""

    board: BoardModel
    medium: MediumModel
    supply: Supply

    @classmethod
    def draw(cls, chance: random.Random) -> Truth:
        """Draws a board and a medium within the range of products on the market."""
        watts = [chance.uniform(1.0, 3.5)]
        for _ in range(chance.choice([1, 2, 4])):
            watts.append(watts[-1] + chance.uniform(0.2, 1.4))
        rate = 10 ** chance.uniform(7.0, 8.5)
        medium = MediumModel(
            write_bytes_per_s=rate,
            read_bytes_per_s=rate * chance.uniform(1.0, 3.0),
            flush_s=10 ** chance.uniform(-2.7, -1.7),
            idle_w=0.0,
            active_w=chance.uniform(0.1, 2.5),
            tail_w=chance.choice([0.0, chance.uniform(0.05, 1.0)]),
            tail_s=10 ** chance.uniform(-0.6, 0.7),
        )
        return cls(
            BoardModel(tuple(watts), 10**9),
            medium,
            Supply(chance.uniform(4.9, 5.25), chance.choice([0.0, chance.uniform(0.02, 0.3)])),
        )

    def values(self) -> dict[str, float]:
        """True value of each parameter, by its key."""
        medium = {
            f"medium.{name}": float(getattr(self.medium, name))
            for name in ("write_bytes_per_s", "read_bytes_per_s", "flush_s", "active_w", "tail_w", "tail_s")
        }
        cores = {f"board.busy_cores_w.{at}": power_w for at, power_w in enumerate(self.board.busy_cores_w)}
        supply = {
            "supply.open_voltage_v": self.supply.open_voltage_v,
            "supply.resistance_ohm": self.supply.resistance_ohm,
        }
        return {**cores, **medium, **supply}


class _Story:
    """Record of all that the board does, in order of time."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.cores: list[tuple[int, int, float]] = []
        self.busy: list[MediumStretch] = []
        self.dirtied: list[tuple[int, float, int]] = []
        self.syncs: list[tuple[int, int]] = []
        self.loads_ns: list[int] = []
        self.phases: list[Phase] = []

    def phase(self, name: str, role: Role, start_ns: int) -> None:
        """Ends a phase that began at `start_ns`."""
        lead_in_s = 1.0 if role is Role.BASELINE else 0.0
        self.phases.append(Phase(name, 1, start_ns, self.now_ns, role=role, lead_in_s=lead_in_s))

    def rest(self, seconds: float) -> None:
        """Does nothing for some seconds."""
        self.now_ns += round(seconds * 1e9)

    def load(self, cores: float, seconds: float) -> None:
        """Keeps some cores busy for some seconds."""
        end_ns = self.now_ns + round(seconds * 1e9)
        self.cores.append((self.now_ns, end_ns, cores))
        self.now_ns = end_ns

    def move(self, nbytes: float, rate: float, mode: MediumMode) -> None:
        """Moves bytes to or from the medium at its rate."""
        end_ns = self.now_ns + round(nbytes / rate * 1e9)
        self.busy.append(MediumStretch(self.now_ns, end_ns, mode))
        self.dirtied.append((self.now_ns, nbytes if mode is MediumMode.WRITING else 0.0, end_ns))
        self.now_ns = end_ns


def _story(truth: Truth, chance: random.Random) -> _Story:
    story, medium, cores = _Story(), truth.medium, len(truth.board.busy_cores_w) - 1
    story.rest(0.5)
    for _ in range(60):
        story.loads_ns.append(story.now_ns)
        story.load(float(cores), 0.02 * chance.randint(1, 4))
        story.loads_ns.append(story.now_ns)
        story.rest(0.02 * chance.randint(1, 4))
    story.phase("signature", Role.CONTROL, story.loads_ns[0])
    story.rest(1.0)
    start_ns = story.now_ns
    story.rest(IDLE_S)
    story.phase("idle-before", Role.BASELINE, start_ns)
    start_ns = story.now_ns
    for busy_cores in range(1, cores + 1):
        story.load(busy_cores - chance.uniform(0.0, 0.03), EACH_S)
        story.rest(0.5)
    for _ in range(3):
        story.move(EACH_S * medium.write_bytes_per_s, medium.write_bytes_per_s, MediumMode.WRITING)
        story.rest(chance.uniform(2.0, 8.0))
    story.move(EACH_S * medium.read_bytes_per_s, medium.read_bytes_per_s, MediumMode.READING)
    story.rest(2.0)
    for _ in range(SYNCS):
        at_ns = story.now_ns
        story.move(SYNC_BYTES, medium.write_bytes_per_s, MediumMode.WRITING)
        flush_ns = round(medium.flush_s * chance.uniform(0.9, 1.1) * 1e9)
        story.busy.append(MediumStretch(story.now_ns, story.now_ns + flush_ns, MediumMode.FLUSHING))
        story.now_ns += flush_ns
        story.syncs.append((at_ns, story.now_ns))
        story.rest(chance.uniform(0.0, 0.01))
    story.phase("run", Role.WORK, start_ns)
    start_ns = story.now_ns
    story.rest(medium.tail_s + 3.0)
    story.phase("settle", Role.DRAIN, start_ns)
    start_ns = story.now_ns
    story.rest(IDLE_S)
    story.phase("idle-after", Role.BASELINE, start_ns)
    story.rest(0.5)
    return story


def recorded(truth: Truth, chance: random.Random, medium_name: str = "made-up") -> Recorded:
    """Simulates the recordings of one board's counters and meter."""
    story = _story(truth, chance)
    rng = np.random.default_rng(chance.getrandbits(32))
    edge_ns = np.arange(0, story.now_ns + STEP_NS, STEP_NS, dtype=np.int64)
    centre_ns = edge_ns[:-1] + STEP_NS // 2
    busy_cores = np.full(centre_ns.size, chance.uniform(0.0, 0.02))
    for start_ns, end_ns, cores in story.cores:
        busy_cores[(centre_ns >= start_ns) & (centre_ns < end_ns)] = cores
    model = PowerModel(truth.board, truth.medium, truth.supply)
    power_w = model.rest_w - truth.board.power_w(0.0) + np.array([truth.board.power_w(float(b)) for b in busy_cores])
    # slow wander of the board's power, which no model describes
    power_w += np.cumsum(rng.normal(0, 1e-5, power_w.size))
    for stretch in MediumCourse(truth.medium.tail_s).between(0, int(edge_ns[-1]), story.busy):
        first, last = np.searchsorted(centre_ns, [stretch.start_ns, stretch.end_ns])
        power_w[first:last] += model.medium_w(stretch.mode)
    trace, phases = _trace(truth, chance, rng, centre_ns, power_w), tuple(story.phases)
    system = _system(story, truth, chance, edge_ns, busy_cores)

    def same(board_ns: np.ndarray) -> np.ndarray:
        return board_ns

    syncs = np.array(story.syncs, np.int64).reshape(-1, 2)
    return Recorded(
        "trial", True, "made-up", medium_name, "serial", len(truth.board.busy_cores_w) - 1,
        windows_of(system, phases, trace, same), phases, SENSOR, trace,
        signature_levels(np.array(story.loads_ns, np.int64), trace, system, same), Intervals(syncs[:, 0], syncs[:, 1]),
    )  # fmt: skip


def _trace(
    truth: Truth, chance: random.Random, rng: np.random.Generator, centre_ns: np.ndarray, power_w: np.ndarray
) -> PowerTrace:
    drawn = np.array([truth.supply.at_power(float(value_w)) for value_w in power_w])
    gain = (1 + chance.uniform(-0.01, 0.01)) * (1 + chance.uniform(-0.005, 0.005))
    volts = 1 + chance.uniform(-0.005, 0.005)
    offset_a = chance.uniform(-0.002, 0.002)
    current_a = gain * drawn[:, 0] + offset_a + rng.normal(0, 3e-4, power_w.size)
    voltage_v = volts * drawn[:, 1]
    read = slice(20, None, 130)
    bus = BusReadings(centre_ns[read], np.round(voltage_v[read] / 0.004) * 0.004)
    made = PowerTrace(centre_ns, np.round(current_a / 1e-4) * 1e-4, voltage_v, bus=bus)
    return made.on_supply_line()


def _system(
    story: _Story, truth: Truth, chance: random.Random, edge_ns: np.ndarray, busy_cores: np.ndarray
) -> pa.Table:
    jitter = np.random.default_rng(chance.getrandbits(32)).integers(-2_000_000, 2_000_000, edge_ns.size)
    at_ns = np.arange(0, int(edge_ns[-1]), SAMPLE_NS, dtype=np.int64)
    at_ns[1:-1] += jitter[: at_ns.size - 2]
    busy_s = np.append(0.0, np.cumsum(busy_cores * STEP_NS * 1e-9))
    cpu_s = np.interp(at_ns, edge_ns, busy_s)

    def moved(mode: MediumMode, rate: float) -> np.ndarray:
        total = np.zeros(at_ns.size)
        for stretch in story.busy:
            if stretch.mode is mode:
                total += np.clip(at_ns - stretch.start_ns, 0, stretch.end_ns - stretch.start_ns) * 1e-9 * rate
        return np.floor(total / 4096) * 4096

    written_bytes = moved(MediumMode.WRITING, truth.medium.write_bytes_per_s)
    dirty = -written_bytes
    for start_ns, nbytes, _ in story.dirtied:
        dirty = dirty + nbytes * (at_ns >= start_ns)
    process_s = 0.9 * cpu_s
    return pa.table(
        {
            "board_ns": at_ns,
            "cpu_busy_s": np.floor(cpu_s * 100) / 100,
            "process_cpu_s": process_s,
            "device_read_bytes": moved(MediumMode.READING, truth.medium.read_bytes_per_s),
            "device_written_bytes": written_bytes,
            "dirty_bytes": np.maximum(dirty, 0.0),
        }
    )


def trial(seed: int) -> tuple[Truth, FittedTwin]:
    """Draws one board and fits its twin."""
    chance = random.Random(f"twin trial {seed}")
    truth = Truth.draw(chance)
    return truth, fit_twin([recorded(truth, chance)])


def main() -> int:
    """Prints for each parameter how often it was identified and held, and the width of its interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missed", action="store_true", help="print each interval that missed")
    options = parser.parse_args()
    held: dict[str, list[bool]] = defaultdict(list)
    wide: dict[str, list[float]] = defaultdict(list)
    for seed in range(options.seed, options.seed + options.trials):
        truth, fitted = trial(seed)
        for key, true in truth.values().items():
            estimate = fitted[key]
            name = "board.busy_cores_w, above 0" if key.startswith("board") and key[-1] != "0" else key
            if estimate.u is not None:
                held[name].append(estimate.holds(true))
                wide[name].append(estimate.u / true if true else float("nan"))
                if options.missed and not held[name][-1]:
                    print(f"seed {seed} {key}: {estimate.value:.5g} +- {estimate.u:.2g}, true {true:.5g}")
            else:
                held.setdefault(name, [])
    print(f"{'parameter':<30} {'found':>5} {'held':>5} {'share':>6} {'median u / value':>17}")
    for name, covered in held.items():
        share = f"{100 * sum(covered) / len(covered):5.1f}%" if covered else "     -"
        width = f"{100 * float(np.nanmedian(wide[name])):.2g} %" if covered else "-"
        print(f"{name:<30} {len(covered):5d} {sum(covered):5d} {share} {width:>17}")
    every = [is_covered for covered in held.values() for is_covered in covered]
    print(f"{'all':<30} {len(every):5d} {sum(every):5d} {100 * sum(every) / len(every):5.1f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
