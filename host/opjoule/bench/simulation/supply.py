"""Supply and meter of every simulated board, and the feed of its activity and sync edges to them.

The meter is the real firmware in the rig simulator. The probe writes its samples and its virtual sync line into two
FIFOs, medium-sim the medium's work into a third. The feed converts samples and work into supply current, after a delay
if the model requires one. It passes on everything up to a watermark: `MARGIN_NS` before the newest sample, so that an
edge whose writer was delayed by less is still in order, and never later than the reports of medium-sim. The rig runs
`DELAY_NS` behind the board: a busy computer makes it wait and catch up, but moves no sample and no edge.
"""

import heapq
import os
import select
import shutil
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from opjoule.base.files import replacing
from opjoule.bench.simulation.medium_work import LineFifo, MediumStretch, MediumWork
from opjoule.bench.simulation.parts import COURSE, PARTS
from opjoule.bench.simulation.power_model import Activity, LoadModel, PowerModel
from opjoule.bench.simulation.simulators import Imperfections, RigSimulator, folder_in_memory
from opjoule.boards.profiles import Profile
from opjoule.meters.serial.options import SIMULATED_SENSOR

MARGIN_NS = 300_000_000
DELAY_NS = 1_200_000_000
"""0.7 s more than the longest time that a model waits for missing information."""
_DIRTY_KEPT_NS = 10 * DELAY_NS
"""Time for which counts of dirty pages are kept. The host asks for the board's present (`DELAY_NS` ago), never
older."""
_IDLE_STEP_NS = 10_000_000
_STOP_LIMIT_S = 60.0
_ABANDON_LIMIT_S = 1.0


class ActivityReader:
    """Converts the probe's cumulative samples to activity, one interval per row."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._last: tuple[int, float, int, int] | None = None

    def row(self, line: str) -> Activity | None:
        """The interval that this line ends; None for a header, the first row or an incomplete line."""
        cells = line.split(",")
        if cells[0] == "board_ns":
            self._columns = cells
            return None
        if len(cells) != len(self._columns):
            return None
        named = dict(zip(self._columns, cells, strict=True))
        moved = int(named["device_read_bytes"]), int(named["device_written_bytes"])
        now = int(named["board_ns"]), float(named["process_cpu_s"]), *moved
        before, self._last = self._last, now
        if before is None or now[0] <= before[0]:
            self._last = before or now
            return None
        used = (now[1] - before[1], now[2] - before[2], now[3] - before[3])
        return Activity(before[0], now[0], *used, dirty_bytes=int(named["dirty_bytes"]))


GONE: Final = "the rig simulator is gone"
"""Value of `broken` once the rig simulator no longer reads."""


class Feed:
    """Thread between the probe and the rig simulator. Until the probe samples, and after its end, the board is idle."""

    def __init__(self, folder: Path, model: LoadModel, medium: MediumWork | None = None) -> None:
        """`medium`: the simulated medium's work; None if the model does not use it."""
        self.system = LineFifo(folder / "system.fifo")
        self.sync = LineFifo(folder / "sync.fifo")
        self.live = folder / "live.fifo"
        os.mkfifo(self.live)
        self._model = model
        self._medium = medium
        self._reader = ActivityReader()
        self._lock = threading.Lock()
        self._sampled = False
        self._probe_lives = True
        self._pending: list[tuple[int, int, str]] = []
        self._dirty: deque[tuple[int, int]] = deque([(0, 0)])
        self._order = 0
        # The rig starts with a delay: it needs the idle power of the time before.
        self._newest_ns = self._drawn_ns = time.monotonic_ns() - 2 * DELAY_NS
        self._held: deque[Activity] = deque()
        self._stop = threading.Event()
        self.broken = ""
        """Reason why nothing is passed on any more; empty while it works."""
        self._thread = threading.Thread(target=self._run, name="twin-feed", daemon=True)

    def start(self) -> None:
        """Starts the thread; the simulator must be about to open the live FIFO."""
        self._thread.start()

    def probe_began(self) -> None:
        """A probe has started: its output is passed on from now on."""
        with self._lock:
            self._probe_lives = True

    def probe_ended(self) -> None:
        """The probe has ended: its output is passed on, then the board is idle, even if more is still written."""
        with self._lock:
            self._carry()
            self._sampled = self._probe_lives = False

    def pending_bytes(self, board_ns: int) -> int:
        """Dirty bytes of the board at `board_ns`, which must not decrease between calls."""
        with self._lock:
            self._forget_dirty(board_ns)
            return self._dirty[0][1]

    def stop(self) -> None:
        """Passes on the rest and closes the simulator's input."""
        self._stop.set()
        self._thread.join(timeout=_STOP_LIMIT_S)
        self.system.close()
        self.sync.close()

    def abandon(self) -> None:
        """Stops without a simulator, whether or not one has opened the live FIFO."""
        self._stop.set()
        reader = os.open(self.live, os.O_RDONLY | os.O_NONBLOCK)  # a thread that waits for a reader continues
        self._thread.join(timeout=_ABANDON_LIMIT_S)
        os.close(reader)
        self.stop()

    def _run(self) -> None:
        try:
            with self.live.open("w", buffering=1 << 16) as sink:
                while not self._stop.is_set():
                    select.select([self.system.descriptor, self.sync.descriptor], [], [], 0.01)
                    with self._lock:
                        self._carry()
                        self._draw(self._drawable_ns)
                        self._pass_on(sink, min(self._newest_ns - MARGIN_NS, self._drawn_ns))
                with self._lock:
                    self._carry()
                    self._draw(self._newest_ns)
                    self._pass_on(sink, self._newest_ns)
                sink.write("q\n")
        except BrokenPipeError:
            self.broken = GONE
            self._carry_on()
        except Exception as error:
            # The simulator ends with its input; without this, the reason of a failed thread would be lost.
            self.broken = f"{type(error).__name__}: {error}"
            raise

    def _carry_on(self) -> None:
        """Keeps reading, so that a loader is not blocked by a full FIFO."""
        while not self._stop.wait(0.01):
            with self._lock:
                self._carry()
                self._draw(self._drawable_ns)
                self._pending.clear()

    @property
    def _drawable_ns(self) -> int:
        """Time up to which the activity of board and medium is known [board_ns]."""
        held_ns = self._newest_ns - self._model.hold_ns
        return min(held_ns, self._medium.known_ns) if self._medium else held_ns

    def _carry(self) -> None:
        """Reads the probe's output, or idles up to now."""
        # Edges are read last, so that those before the newest sample are there even if this process was delayed.
        now_ns = time.monotonic_ns()
        if self._medium:
            self._medium.carry()
        samples = self.system.lines()
        for line in self.sync.lines():
            stamp, _, level = line.partition(" ")
            if stamp.isdigit() and level.strip() in {"0", "1"}:
                self._hold(int(stamp), f"e {stamp} {level.strip()}\n")
        if not self._probe_lives or not (samples or self._sampled):
            self._idle_until(now_ns)
        for line in samples if self._probe_lives else ():
            if activity := self._reader.row(line):
                self._take(activity)

    def _take(self, activity: Activity) -> None:
        """Appends the part of an activity after the newest one; before the first sample the board is idle."""
        if not self._sampled:
            self._sampled = True
            self._idle_until(activity.start_board_ns)
        if activity.end_board_ns > self._newest_ns:
            self._append(replace(activity, start_board_ns=self._newest_ns))

    def _idle_until(self, now_ns: int) -> None:
        while now_ns - self._newest_ns >= _IDLE_STEP_NS:
            self._append(Activity(self._newest_ns, self._newest_ns + _IDLE_STEP_NS))

    def _append(self, activity: Activity) -> None:
        self._held.append(activity)
        self._newest_ns = activity.end_board_ns
        if activity.dirty_bytes != self._dirty[-1][1]:
            self._dirty.append((self._newest_ns, activity.dirty_bytes))
        self._forget_dirty(self._newest_ns - _DIRTY_KEPT_NS)

    def _forget_dirty(self, board_ns: int) -> None:
        """Drops counts of dirty pages that were replaced at or before `board_ns`."""
        while len(self._dirty) > 1 and self._dirty[1][0] <= board_ns:
            self._dirty.popleft()

    def _draw(self, limit_ns: int) -> None:
        """Converts the activity that ended by then to current."""
        while self._held and self._held[0].end_board_ns <= limit_ns:
            activity = self._held.popleft()
            busy: list[MediumStretch] = self._medium.until(activity.end_board_ns) if self._medium else []
            for board_ns, current_a, voltage_v in self._model.rows(activity, self._held, busy):
                self._hold(board_ns, f"p {board_ns} {current_a:.6f} {voltage_v:.6f}\n")
            self._drawn_ns = activity.end_board_ns

    def _hold(self, board_ns: int, line: str) -> None:
        self._order += 1
        heapq.heappush(self._pending, (board_ns, self._order, line))

    def _pass_on(self, sink: IO[str], watermark_ns: int) -> None:
        while self._pending and self._pending[0][0] < watermark_ns:
            sink.write(heapq.heappop(self._pending)[2])
        sink.write(f"w {watermark_ns}\n")
        sink.flush()


IMPERFECTIONS = "simulator-imperfections.json"
"""File of the record: the drawn errors."""
PERIOD_MS = 10
"""Sampling period of the board's activity."""
SIGNATURE_PERIOD_MS = 2
"""Sampling period during a load signature (probe/serve), which limits the precision of the alignment."""
_SIMULATOR_STOP_LIMIT_S = 30.0
"""Time limit for the simulator's end: it runs late by the delay, and by more on a busy computer."""
_STATUS_LIMIT_S = 5.0


def drawn_for(profile: Profile, greatest_w: float, seed: int) -> Imperfections:
    """A rig drawn at random, with a supply strong enough for a board of `greatest_w`, as a user would choose."""
    drawn = Imperfections.draw(seed)
    least_v = profile.least_voltage_v
    return drawn if least_v is None else drawn.carrying(greatest_w, least_v)


@dataclass(eq=False)
class SimulatedSupply:
    """Runs rig-sim from its creation to close(); it follows the feed, and `meter` is its address."""

    imperfections: Imperfections
    model: LoadModel
    _: KW_ONLY
    root: InitVar[Path]
    truth: Path
    """File for the simulator's truth, in the record's folder; its other secrets go to the same folder."""
    seed: int
    """Seed from which the rig was drawn; also the seed of its noise."""
    course: bool = True
    """Whether to keep the true energy over time, which is on this computer's clock."""
    power: PowerModel | None = None
    """The drawn board and medium, for the record; None if none was drawn."""
    work: InitVar[MediumWork | None] = None
    """The medium's work; None if the model does not use it."""

    def __post_init__(self, root: Path, work: MediumWork | None) -> None:
        self._temporary = folder_in_memory()
        self.folder = Path(self._temporary.name)
        self.model.begin(self.folder)
        self.feed = Feed(self.folder, self.model, work)
        delay = ("--delay-ms", str(DELAY_NS // 1_000_000), "--pace", "1")
        load = ["--live", str(self.feed.live), *delay, "--course", str(self.folder / "course.csv")]
        truth = self.folder / "truth.json"
        self._end_reported = False
        try:
            self.feed.start()
            self._simulator = RigSimulator(root, self.folder, load, self.imperfections, self.seed, truth)
        except BaseException:  # nobody else has a reference to end it
            self.feed.abandon()
            self.model.end()
            self._temporary.cleanup()
            raise
        self.meter = f"serial:{self._simulator.port},{SIMULATED_SENSOR},label={self.imperfections.meter_name}"

    def facts(self) -> dict[str, Any]:
        """Facts about the simulation for run.json; the drawn errors stay hidden, like those of a real rig."""
        return {
            "models": "host/opjoule/bench/simulation/models.toml",
            "drawn": f"again for each measurement, stated afterwards in {IMPERFECTIONS}",
            "rig_delay_s": DELAY_NS * 1e-9,
            "load_step_s": SIGNATURE_PERIOD_MS * 1e-3,
        }

    def faults(self) -> list[str]:
        """One line, reported once, if the simulator or its input ended too early."""
        status, broken = self._simulator.status(), self.feed.broken
        if self._end_reported or (status is None and not broken):
            return []
        self._end_reported = True
        if broken and broken != GONE:
            return [f"the rig simulator's input ended: {broken}"]
        # its pipe breaks a moment before the status is available
        status = self._simulator.status(_STATUS_LIMIT_S)
        return [f"the rig simulator ended by itself with status {status}: {self._simulator.last_words()}"]

    def _tell(self) -> None:
        """Copies the truth into the record after all estimates; never over that of another run."""
        record, estimated = self.truth.parent, self.folder / "truth.json"
        if self.truth.exists() or not ((record / "run.json").exists() and estimated.exists()):
            return
        copied = {"truth.json": self.truth, **({"course.csv": record / COURSE} if self.course else {})}
        if (self.folder / PARTS).exists():
            copied[PARTS] = record / PARTS
        for name, target in copied.items():
            with replacing(target) as temporary:
                shutil.copyfile(self.folder / name, temporary)
        self.imperfections.write(record / IMPERFECTIONS, self.seed, self.power)

    def close(self) -> None:
        """Ends the feed, lets the simulator write its truth, and removes temporary files."""
        for fault in self.faults():  # not reported since it ended
            print(f"rig-sim: {fault}", file=sys.stderr, flush=True)
        self.feed.stop()
        self.model.end()
        self._simulator.end(_SIMULATOR_STOP_LIMIT_S)
        with suppress(OSError):  # on a full disk, the error that ended the record is the one to report
            self._tell()
        self._temporary.cleanup()
