"""How many compilers run at once."""

import os

import memory
import pytest

GIB = 1 << 30


def computer(folder, available_bytes, limits=()):
    """/proc and /sys/fs/cgroup of a computer; `limits`: (memory.max, memory.current) of cgroups inside each other."""
    proc, cgroups = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {available_bytes // 1024} kB\n")
    own = cgroups
    own.mkdir()
    for number, (limit, used) in enumerate(limits):
        own = own / f"group{number}"
        own.mkdir()
        (own / "memory.max").write_text(f"{limit}\n")
        (own / "memory.current").write_text(f"{used}\n")
    (proc / "self/cgroup").write_text(f"0::/{own.relative_to(cgroups)}\n")
    return proc, cgroups


@pytest.mark.parametrize(
    ("available_bytes", "limits", "jobs"),
    [
        (24 * GIB, (), 4),
        (int(0.7 * GIB), (), 1),  # a Raspberry Pi 3 with 1 GB
        (0, (), 1),
        (24 * GIB, (("max", 0), (GIB, 0)), 1),
        (24 * GIB, ((3 * GIB, GIB), ("max", 0)), 3),
        (24 * GIB, (("odd", 0),), 4),
    ],
)
def test_no_more_compilers_run_than_memory_holds(tmp_path, monkeypatch, available_bytes, limits, jobs):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert memory.jobs_at_once(*computer(tmp_path, available_bytes, limits)) == jobs
