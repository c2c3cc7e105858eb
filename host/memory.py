"""How many compilers run at once: no more than the computer's memory holds. Standard library only."""

from __future__ import annotations

import os
import re
from pathlib import Path

JOB_BYTES = 700_000_000
"""Memory of the largest compiler process: 540 MB (loader's command line, gcc 12) and some reserve."""


def jobs_at_once(builds: int, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Number of compilers that each of several builds runs at once: one a processor; 0 if memory is too short.

    Args: builds: number of builds side by side; a single one has at least 1 compiler.
    """
    held = free_bytes(proc, cgroups) // (JOB_BYTES * builds)
    processors = len(os.sched_getaffinity(0))
    if builds > 1:
        return processors if held >= processors else 0
    return max(1, min(processors, held))


def free_bytes(proc: Path, cgroups: Path) -> int:
    """Memory that a program can still have [bytes]: the kernel's estimate, or what the limits of its cgroups leave."""
    text = (proc / "meminfo").read_text()
    available = re.search(r"^MemAvailable:\s*(\d+) kB", text, re.MULTILINE)
    free = int(available[1]) * 1024 if available else JOB_BYTES
    for folder in _own_cgroups(proc, cgroups):
        try:
            limit = (folder / "memory.max").read_text().strip()
            used = int((folder / "memory.current").read_text())
        except (OSError, ValueError):
            continue
        if limit.isdigit():
            free = min(free, int(limit) - used)
    return max(free, 0)


def _own_cgroups(proc: Path, cgroups: Path) -> list[Path]:
    """This process's control group (version 2) and those around it."""
    try:
        line = (proc / "self/cgroup").read_text().splitlines()[-1]
    except (OSError, IndexError):
        return []
    own = cgroups / line.partition("::")[2].strip("/")
    return [folder for folder in (own, *own.parents) if folder.is_relative_to(cgroups)]
