"""Carries the loader's activity and sync edges to the rig simulator, in order of their time stamps.

The loader writes its system samples and its virtual sync line into two FIFOs. The feed turns samples into
supply current and passes everything on only up to a watermark that lies `MARGIN_NS` behind the newest sample,
so that an edge whose writer was held up for less than that still finds its place. The rig runs `DELAY_NS` behind
the board: a busy computer makes it wait and catch up, but moves no sample and no edge.
"""

from __future__ import annotations

import heapq
import os
import select
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO

from opjoule.system_errors import naming
from opjoule.twin.power_model import Activity, PowerModel

MARGIN_NS = 300_000_000
DELAY_NS = 1_000_000_000
_IDLE_STEP_NS = 10_000_000
_STOP_LIMIT_S = 60.0


class LineFifo:
    """A FIFO that this process reads line by line without blocking, whatever its writers do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        # Open for writing too: a writer that leaves must not look like the end of the line.
        self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._partial = b""

    def lines(self) -> list[str]:
        """Whole lines that have arrived."""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return []
        *whole, self._partial = (self._partial + data).split(b"\n")
        return [line.decode("ascii", "replace") for line in whole]

    def close(self) -> None:
        """Ends reading and removes the FIFO."""
        os.close(self.descriptor)
        self.path.unlink(missing_ok=True)


class ActivityReader:
    """Turns the loader's cumulative system samples into activity, one interval a row."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._last = (0, 0.0, 0, 0)
        self._on_medium = True

    def start(self, start_board_ns: int, *, on_medium: bool) -> None:
        """A loader process starts now: its counters begin at zero; what it reads and writes is on the medium or not."""
        self._columns = []
        self._on_medium = on_medium
        self._last = (start_board_ns, 0.0, 0, 0)

    def row(self, line: str) -> Activity | None:
        """The interval that this line ends; None for a header or a torn line."""
        cells = line.split(",")
        if cells[0] == "board_ns":
            self._columns = cells
            return None
        if len(cells) != len(self._columns):
            return None
        named = dict(zip(self._columns, cells, strict=True))
        before_ns, before_cpu_s, before_read, before_written = self._last
        now = (
            int(named["board_ns"]),
            float(named["process_cpu_s"]),
            int(named["process_read_bytes"]),
            int(named["process_written_bytes"]),
        )
        if now[0] <= before_ns:
            return None
        self._last = now
        read, written = (now[2] - before_read, now[3] - before_written) if self._on_medium else (0, 0)
        return Activity(before_ns, now[0], now[1] - before_cpu_s, read, written)


class Feed:
    """The thread between the loader and the rig simulator."""

    def __init__(self, folder: Path, model: PowerModel) -> None:
        self.system = LineFifo(folder / "system.fifo")
        self.sync = LineFifo(folder / "sync.fifo")
        self.live = folder / "live.fifo"
        os.mkfifo(self.live)
        self._model = model
        self._reader = ActivityReader()
        self._lock = threading.Lock()
        self._loader_runs = False
        self._copy: IO[str] | None = None
        self._copy_path = folder
        self._copy_error: OSError | None = None
        self._pending: list[tuple[int, int, str]] = []
        self._queue_history: deque[tuple[int, float]] = deque([(0, 0.0)])
        self._order = 0
        # The rig starts a delay behind: it needs the idle power of the time before.
        self._newest_ns = time.monotonic_ns() - 2 * DELAY_NS
        self._stop = threading.Event()
        self.broken = ""
        self._thread = threading.Thread(target=self._run, name="twin-feed", daemon=True)

    def start(self) -> None:
        """Starts carrying; the simulator must be about to open the live FIFO."""
        self._thread.start()

    def loader_starts(self, copy: Path, *, on_medium: bool = True) -> None:
        """From here on the activity is the loader's; its samples are also written to `copy`.

        Args:
            on_medium: it has a database open. One that idles writes its own files alone, which a board keeps in memory.
        """
        with self._lock:
            self._idle_until(time.monotonic_ns())
            self._loader_runs = True
            self._reader.start(self._newest_ns, on_medium=on_medium)
            self._copy = copy.open("w")
            self._copy_path, self._copy_error = copy, None

    def loader_ended(self) -> None:
        """The loader has exited: what it wrote is carried, then the board is idle.

        Raises: OSError: its samples could not all be copied.
        """
        with self._lock:
            self._carry()
            self._loader_runs = False
            copy, self._copy = self._copy, None
            with naming(self._copy_path):
                if self._copy_error:
                    raise self._copy_error
                if copy:
                    copy.close()

    def pending_bytes(self, board_ns: int) -> int:
        """Bytes in the simulated medium's write queue at `board_ns`, which must not go back between calls."""
        with self._lock:
            while len(self._queue_history) > 1 and self._queue_history[1][0] <= board_ns:
                self._queue_history.popleft()
            return int(self._queue_history[0][1])

    def stop(self) -> None:
        """Carries what is left and tells the simulator that nothing more will come."""
        self._stop.set()
        self._thread.join(timeout=_STOP_LIMIT_S)
        self.system.close()
        self.sync.close()

    def _run(self) -> None:
        try:
            with self.live.open("w", buffering=1 << 16) as sink:
                while not self._stop.is_set():
                    select.select([self.system.descriptor, self.sync.descriptor], [], [], 0.01)
                    with self._lock:
                        self._carry()
                        self._pass_on(sink, self._newest_ns - MARGIN_NS)
                with self._lock:
                    self._carry()
                    self._pass_on(sink, self._newest_ns)
                sink.write("q\n")
        except OSError as error:
            self.broken = f"the rig simulator is gone ({error.strerror})"
            self._carry_on()

    def _carry_on(self) -> None:
        """A loader must not be held up because nobody reads what it writes."""
        while not self._stop.wait(0.01):
            with self._lock:
                self._carry()
                self._pending.clear()

    def _carry(self) -> None:
        """Takes in what the loader wrote, or idles up to now."""
        # Edges are read last: those before the newest sample must be there, even if this process was kept from running.
        now_ns = time.monotonic_ns()
        samples = self.system.lines() if self._loader_runs else []
        for line in self.sync.lines():
            stamp, _, level = line.partition(" ")
            if stamp.isdigit() and level.strip() in {"0", "1"}:
                self._hold(int(stamp), f"e {stamp} {level.strip()}\n")
        if not self._loader_runs:
            self._idle_until(now_ns)
            return
        for line in samples:
            if self._copy and not self._copy_error:
                try:
                    self._copy.write(line + "\n")
                except OSError as error:  # the record's disk is full: told when the loader has ended
                    self._copy_error = error
            if activity := self._reader.row(line):
                self._draw(activity)

    def _idle_until(self, now_ns: int) -> None:
        while now_ns - self._newest_ns >= _IDLE_STEP_NS:
            self._draw(Activity(self._newest_ns, self._newest_ns + _IDLE_STEP_NS, 0.0, 0, 0))

    def _draw(self, activity: Activity) -> None:
        current_a, voltage_v = self._model.step(activity)
        self._hold(activity.start_board_ns, f"p {activity.start_board_ns} {current_a:.6f} {voltage_v:.6f}\n")
        self._newest_ns = activity.end_board_ns
        if self._model.pending_bytes != self._queue_history[-1][1]:
            self._queue_history.append((self._newest_ns, self._model.pending_bytes))

    def _hold(self, board_ns: int, line: str) -> None:
        self._order += 1
        heapq.heappush(self._pending, (board_ns, self._order, line))

    def _pass_on(self, sink: IO[str], watermark_ns: int) -> None:
        while self._pending and self._pending[0][0] < watermark_ns:
            sink.write(heapq.heappop(self._pending)[2])
        sink.write(f"w {watermark_ns}\n")
        sink.flush()
