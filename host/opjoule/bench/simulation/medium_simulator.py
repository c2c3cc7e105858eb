"""Program that slows a simulated board's workloads to its medium's speed, and reports when that medium works."""

import queue
import threading
from pathlib import Path
from typing import Any

from opjoule.base.errors import RigFault
from opjoule.bench.simulation.medium_work import MediumWork
from opjoule.bench.simulation.power_model import BoardModel, MediumModel
from opjoule.bench.simulation.rig_simulator import folder_in_memory
from opjoule.boards.connection.line_process import LineProcess
from opjoule.boards.connection.shell import end_by_input
from opjoule.boards.programs.probe import drained

PROGRAM = "medium-sim"
_START_LIMIT_S = 30.0
_STOP_LIMIT_S = 30.0
_DROP_LIMIT_S = 300.0
LARGEST_EXCESS = 0.1
"""Greatest relative increase of the mean sync time by this computer's disk without a warning."""


class MediumSimulator(LineProcess):
    """Runs `medium-sim serve` from its creation to close()."""

    def __init__(self, program: Path, board: BoardModel, medium: MediumModel, files: Path | None = None) -> None:
        """Starts it.

        Args:
            board: its page cache is in front of the medium.
            files: folder of the medium's files, of which the page cache holds no more than the board's memory and
                which drop_cache() drops; None: all files that this computer's page cache holds stay in it.
        Raises: RigFault: it does not start.
        """
        if not program.exists():
            raise RigFault(f"{program} is missing: run host/measure.py doctor --simulate")
        self._temporary = folder_in_memory()
        folder = Path(self._temporary.name)
        self.kernel_files = str(folder / "kernel")
        (folder / "kernel").mkdir()
        self.work = MediumWork(folder / "work.fifo")
        socket = str(folder / "socket")
        self.under = (str(program), "run", "--socket", socket, "--")
        """Prefix of a command line under which the command is slowed."""
        self._faults: queue.Queue[str] = queue.Queue()
        self._disk: dict[str, int] = {}
        self._beyond_bytes = 0
        self._dropped: queue.SimpleQueue[dict[str, int]] = queue.SimpleQueue()
        self._closing = False
        self._hello: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        values = {
            "socket": socket,
            "state": self.kernel_files,
            "live": str(self.work.fifo.path),
            "write-bytes-per-s": f"{medium.write_bytes_per_s:.9g}",
            "read-bytes-per-s": f"{medium.read_bytes_per_s:.9g}",
            "flush-s": f"{medium.flush_s:.9g}",
            "dirty-limit-bytes": str(board.dirty_limit_bytes),
            "dirty-background-bytes": str(board.dirty_background_bytes),
        }
        if files:
            values |= {"files": str(files), "cache-bytes": str(board.page_cache_bytes)}
        options = [word for name, value in values.items() for word in (f"--{name}", value)]
        super().__init__([str(program), "serve", *options])
        self._reader = threading.Thread(target=self._follow, name=PROGRAM, daemon=True)
        self._reader.start()
        try:
            hello = self._hello.get(timeout=_START_LIMIT_S)
        except queue.Empty:
            hello = {}
        if "medium_sim" not in hello:
            self.close()
            raise RigFault(f"{PROGRAM} does not start: {hello.get('said', 'it says nothing')}")
        self.why_not = "" if hello["slows"] else str(hello["why"] or "it does not say why")
        """Reason why nothing is slowed; empty if commands are slowed."""

    def drop_cache(self) -> None:
        """Drops the page cache of the medium's files. Raises: RigFault: it does not answer, or they stay in memory."""
        assert self._process.stdin
        try:
            self._process.stdin.write("drop\n")
            self._process.stdin.flush()
            dropped = self._dropped.get(timeout=_DROP_LIMIT_S)
        except (OSError, ValueError, queue.Empty):
            raise RigFault("the simulated medium does not drop the page cache: it has ended") from None
        if 2 * dropped["left_bytes"] > dropped["cached_bytes"]:
            left_mb = dropped["left_bytes"] / 1e6
            raise RigFault(
                f"page_cache=drop: {left_mb:.0f} MB of the simulated medium's files stay in memory: "
                "put the clone on a disk, or leave them with --state page_cache=keep"
            )

    def faults(self) -> list[str]:
        """Faults since the last call, one line each."""
        faults = drained(self._faults)
        return [] if self.why_not else faults

    def warnings(self) -> list[str]:
        """Lines on a page cache beyond the board's memory, and on a disk that made syncs slower than the medium's."""
        beyond = (
            f"up to {self._beyond_bytes / 1e6:.0f} MB more than the simulated board's memory stayed in the page cache, "
            "because programs had mapped them: fewer reads than a board's reached the medium"
        )
        return [*([beyond] if self._beyond_bytes else []), *self._slower_disk()]

    def _slower_disk(self) -> list[str]:
        if not self._disk or self._disk["excess_ns"] <= LARGEST_EXCESS * self._disk["model_ns"]:
            return []
        slower = f"{self._disk['slower']} of {self._disk['syncs']} syncs"
        longer = self._disk["excess_ns"] / self._disk["model_ns"]
        return [
            f"this computer's disk was slower than the simulated medium in {slower}: a sync took {longer:.0%} longer "
            "on average than on the medium; measure when nothing else writes to this disk"
        ]

    def _follow(self) -> None:
        """Processes its output: first a greeting, then faults."""
        greeted = False
        for entry in self.lines():
            if "medium_sim" in entry:
                self._hello.put(entry)
                greeted = True
            elif "disk" in entry:
                self._disk = entry["disk"]
            elif "dropped" in entry:
                self._dropped.put(entry["dropped"])
            elif "cache" in entry:
                self._beyond_bytes = int(entry["cache"]["beyond_bytes"])
            elif "fault" in entry:
                self._faults.put(f"simulated medium: {entry['fault']}")
        said = self.complaint() or f"it ended with status {self.wait()}"
        if not greeted:
            self._hello.put({"said": said})
        elif not self._closing:
            self._faults.put(f"the simulated medium has ended and no longer slows anything: {said}")
        self.work.ended = True

    def close(self) -> None:
        """Ends it, which releases all blocked commands, and removes its files; may be called twice."""
        if self._closing:
            return
        self._closing = True
        end_by_input(self._process, _STOP_LIMIT_S)
        self._reader.join()
        self.work.fifo.close()
        self._temporary.cleanup()
