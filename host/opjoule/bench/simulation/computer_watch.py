"""Samples the load of the computer that a simulated board shares with other programs."""

import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from opjoule.energy.operations.board_files import COLUMNS

PERIOD_S: Final = 1.0
_BUSY: Final = (0, 1, 2, 7)
"""Columns of a line of /proc/stat: user, nice, system, steal. Source: proc_stat(5)."""
_KTHREADD: Final = 2
"""Process number of the parent of all kernel threads; in a container it may be any program."""


class ProcessorTimes(NamedTuple):
    """Processor times since the computer's start."""

    processors: int
    busy_s: float
    own_s: float


class ComputerWatch:
    """Thread that appends a sample to the file once a second, from its creation to close()."""

    def __init__(self, path: Path) -> None:
        """Raises: FileExistsError: raw data is never overwritten."""
        self._file = path.open("x", encoding="utf-8", buffering=1)
        self._file.write(",".join(COLUMNS) + "\n")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="computer-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the samples; the file does not change afterwards. May be called twice."""
        self._ended.set()
        self._thread.join()
        self._file.close()

    def _run(self) -> None:
        with suppress(OSError):  # on a full disk, the error of the record's own files is the one to report
            while True:
                times = processor_times(Path("/proc"), os.getpid())
                self._file.write(f"{time.monotonic_ns()},{times.processors},{times.busy_s:.2f},{times.own_s:.2f}\n")
                if self._ended.wait(PERIOD_S):
                    return


def processor_times(proc: Path, root: int) -> ProcessorTimes:
    """Times of all processors, and those of a process with everything that it has started.

    A process has the times of its ended children once it has waited for them. Kernel threads, which write the
    simulated medium's files to the disk, count as own.
    """
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
    lines = (proc / "stat").read_text(encoding="ascii").splitlines()
    ticks = [int(column) for column in lines[0].split()[1:]]
    processors = sum(line.startswith("cpu") for line in lines) - 1
    own = {root, _KTHREADD} if _is_kthreadd(proc) else {root}
    children, spent = defaultdict(list), {}
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            number = int(stat.parent.name)
            children[int(fields[1])].append(number)
            spent[number] = sum(map(int, fields[11:15]))
    waiting = list(own)
    while waiting:
        begun = children[waiting.pop()]
        own.update(begun)
        waiting.extend(begun)
    busy = sum(ticks[column] for column in _BUSY if column < len(ticks))
    return ProcessorTimes(processors, busy * tick_s, sum(spent.get(number, 0) for number in own) * tick_s)


def _is_kthreadd(proc: Path) -> bool:
    with suppress(OSError):
        return (proc / str(_KTHREADD) / "comm").read_text(encoding="utf-8").strip() == "kthreadd"
    return False
