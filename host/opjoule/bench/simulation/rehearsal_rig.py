"""Simulated rig for rehearsals of a commissioning; its board plays loads through its power model. SIMULATED.

The probe of a simulated board loads this computer's processors, of which a busy computer has few free: a rehearsal
would fail. Here the model draws the current of a board with free processors.
"""

import contextlib
import json
import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from opjoule.bench.simulation.feed import DELAY_NS
from opjoule.bench.simulation.line_fifo import LineFifo
from opjoule.bench.simulation.medium_work import MediumStretch
from opjoule.bench.simulation.power_model import Activity, LoadModel, PowerModel, Rows
from opjoule.bench.simulation.rehearsal_desk import BETWEEN_OHM, SHUNT_OHM, DrawnRig
from opjoule.bench.simulation.rig import DelayedProbe, RigSetup, SimulatedRig, simulated_rig
from opjoule.clocks.exchanges import Exchange
from opjoule.energy.error_bounds import CURRENT, VOLTAGE, ErrorBounds
from opjoule.meters.interface import Losses, Meter, MeterEvent, MeterIdentity, Samples


class Witness(Meter):
    """A second meter in series, on the supply side of the shunt: 1,000 readings a second, 0.1 %."""

    PERIOD_NS: Final = 1_000_000
    LATE_NS: Final = 1_500_000_000
    """Delay of its readings, longer than that of any row of the feed; its clock lags by the rig's delay."""

    def __init__(self, gain: float, before_ohm: float) -> None:
        """`gain`: read over true current; `before_ohm`: resistance between its voltage terminals and the board's."""
        self._gain, self._before_ohm = gain, before_ohm
        self._rows: deque[tuple[int, float, float]] = deque(maxlen=200_000)
        self._lock = threading.Lock()
        self._read_ns = 0
        self._exchange: Exchange | None = None

    def tell(self, rows: Sequence[tuple[int, float, float]]) -> None:
        """Adds rows of current and voltage at the board, each from its time on [board_ns]."""
        with self._lock:
            self._rows.extend(rows)

    def open(self) -> MeterIdentity:
        """Identity of the simulated meter."""
        return MeterIdentity("witness", "simulated", "second meter", 0, protocol_version=1, simulated=True)

    def start(self) -> None:
        """Starts sampling."""
        self._read_ns = (self._now_ns() // self.PERIOD_NS) * self.PERIOD_NS

    def read(self, timeout_s: float) -> list[MeterEvent]:
        """Samples since the last call."""
        time.sleep(min(timeout_s, 0.05))
        events: list[MeterEvent] = []
        if self._exchange:
            events.append(self._exchange)
            self._exchange = None
        count = (self._now_ns() - self._read_ns) // self.PERIOD_NS
        if count <= 0:
            return events
        at_ns = self._read_ns + self.PERIOD_NS * np.arange(1, count + 1, dtype=np.int64)
        with self._lock:
            known = list(self._rows)
        if not known or known[0][0] > at_ns[0]:
            return events
        self._read_ns = int(at_ns[-1])
        stamps, current_a, voltage_v = (np.array(column) for column in zip(*known, strict=True))
        place = np.searchsorted(stamps, at_ns, side="right") - 1
        source_v = voltage_v[place] + self._before_ohm * current_a[place]
        return [*events, Samples(0, at_ns, current_a[place] * self._gain, source_v)]

    def clock_exchange(self) -> None:
        """Answers immediately."""
        now_ns = time.monotonic_ns()
        at_ns = now_ns - DELAY_NS
        self._exchange = Exchange(now_ns, at_ns, at_ns, now_ns)

    def stop(self) -> list[MeterEvent]:
        """Remaining samples."""
        return self.read(0.0)

    def error_bounds(self) -> ErrorBounds:
        """0.1 % each, and a crystal's clock error."""
        return ErrorBounds(
            gain_errors_max={CURRENT: 0.001, VOLTAGE: 0.001},
            current_offset_max_a=1e-4,
            current_step_a=1e-5,
            voltage_step_v=1e-4,
            current_max_a=6.0,
            seen_fraction=1.0,
            clock_error_max=1e-4,
        )

    @property
    def losses(self) -> Losses:
        """None."""
        return Losses()

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self.LATE_NS


MARGIN_NS: Final = 300_000_000
"""Idle time before and after a pattern; longer than the model waits for events."""


class PlayedLoad(LoadModel):
    """The board's power model with added patterns; a second meter sees the same current."""

    def __init__(self, model: PowerModel, witness: Witness, sign: int = 1) -> None:
        """`sign`: -1 for a sensor with exchanged inputs."""
        self._model, self._witness, self._sign = model, witness, sign
        self._lock = threading.Lock()
        self._changes: list[tuple[int, int]] = []
        """Times [board_ns] and the level from each on."""
        self._level = self._played = 0

    def play(self, changes: Sequence[tuple[int, int]]) -> None:
        """Schedules a future pattern: times [board_ns] and the levels from then on, 1 for busy."""
        with self._lock:
            self._changes += changes

    def play_signature(self, bits: str, bit_ms: int, folder: Path) -> tuple[int, int]:
        """Plays a pattern from now on, and writes its changes to `folder`; returns its start and end [board_ns]."""
        start_ns = time.monotonic_ns() + MARGIN_NS
        end_ns = start_ns + len(bits) * bit_ms * 1_000_000
        steps = np.diff([int(bit) for bit in bits], prepend=0, append=0)
        places = np.flatnonzero(steps)
        changes = [(start_ns + int(at) * bit_ms * 1_000_000, int(steps[at] > 0)) for at in places]
        self.play(changes)
        self._played += 1
        with (folder / f"played-{self._played}.events.jsonl").open("w") as file:
            for at_ns, level in changes:
                entry = {"event": "load-change", "board_ns": at_ns, "u_ns": 0.0, "level": level}
                file.write(f"{json.dumps(entry)}\n")
        time.sleep(max(end_ns + MARGIN_NS - time.monotonic_ns(), 0) * 1e-9)
        return start_ns, end_ns

    def rows(self, activity: Activity, later: Sequence[Activity], busy: Sequence[MediumStretch]) -> Rows:
        """One row at each change of the medium's mode, and of the pattern."""
        model, rows = self._model, []
        busy_cores = activity.cpu_s / activity.span_s
        for stretch in model.stretches(activity, busy):
            for at_ns, level in self._levels(stretch.start_ns, stretch.end_ns):
                cores = busy_cores + level * (len(model.board.busy_cores_w) - 1)
                power_w = model.board.power_w(cores) + model.medium.idle_w + model.medium_w(stretch.mode)
                rows.append((at_ns, *model.supply.at_power(power_w)))
        self._witness.tell(rows)
        return [(at_ns, self._sign * current_a, volts) for at_ns, current_a, volts in rows]

    def _levels(self, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """Levels within a stretch, each from its time on; successive calls have adjacent stretches."""
        with self._lock:
            while self._changes and self._changes[0][0] <= start_ns:
                self._level = self._changes.pop(0)[1]
            levels = [(start_ns, self._level)]
            while self._changes and self._changes[0][0] < end_ns:
                levels.append(self._changes.pop(0))
                self._level = levels[-1][1]
        return levels


class PlayingProbe(DelayedProbe):
    """A probe that sends its load patterns to the power model; otherwise a normal probe."""

    def __init__(self, load: PlayedLoad, *started: Any, **simulated: Any) -> None:
        """Starts a probe; the other arguments are DelayedProbe's."""
        super().__init__(*started, **simulated)
        self._load, self._folder = load, Path(started[2])

    def play_signature(self, bits: str, bit_ms: int) -> tuple[int, int]:
        """Has the model play the pattern; returns its start and end [board_ns]."""
        return self._load.play_signature(bits, bit_ms, self._folder)


HUM_HZ: Final = 100
"""Edges per second that a floating input picks up from the mains: two per period of 50 Hz."""


@contextmanager
def _hum(line: LineFifo) -> Iterator[None]:
    """Mains edges on a floating sync line during the block."""
    ended = threading.Event()

    def run() -> None:
        level, chance = 0, random.Random(1)
        with contextlib.suppress(OSError), line.path.open("w", buffering=1) as sink:
            while not ended.wait(chance.uniform(0.5, 1.5) / HUM_HZ):
                level = 1 - level
                sink.write(f"{time.monotonic_ns()} {level}\n")

    thread = threading.Thread(target=run, name="twin-hum", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def second_meter(rig: DrawnRig) -> Witness:
    """The second meter of a drawn rig."""
    return Witness(1.02 if rig.plant == "second-meter" else 1.0, SHUNT_OHM + BETWEEN_OHM)


@contextmanager
def rehearsal_rig(rig: DrawnRig, witness: Witness, *, root: Path, files: Path) -> Iterator[SimulatedRig]:
    """The drawn rig, which tells the witness its current.

    Args:
        files: folder for the simulated board's files, created here and removed at the end.
    """
    load = PlayedLoad(rig.power, witness, rig.sign)
    options = RigSetup(root=root, files=files, truth=files / "truth.json", seed=rig.seed)
    with simulated_rig(
        *(rig.profile, rig.sensor, rig.power, load, options),
        course=False,
        wired=rig.plant not in ("dead-sync", "floating-d8"),
        slowed=rig.plant != "wrong-medium",
        probe=partial(PlayingProbe, load),
    ) as simulated:
        port = simulated.meter.removeprefix("serial:").partition(",")[0]
        with _hum(simulated.supply.feed.sync) if rig.plant == "floating-d8" else nullcontext():
            yield replace(simulated, meter=rig.meter(port))
