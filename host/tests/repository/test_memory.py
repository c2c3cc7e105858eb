"""How many compilers run at once."""

import os

import bootstrap
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
    ("available_bytes", "limits", "alone", "of_two"),
    [
        (24 * GIB, (), 4, 4),
        (4 * GIB, (), 4, 0),
        (int(0.7 * GIB), (), 1, 0),  # a Raspberry Pi 3 with 1 GB
        (0, (), 1, 0),
        (24 * GIB, (("max", 0), (GIB, 0)), 1, 0),
        (24 * GIB, ((3 * GIB, GIB), ("max", 0)), 3, 0),
        (24 * GIB, (("odd", 0),), 4, 4),
    ],
)
def test_no_more_compilers_run_than_memory_holds(tmp_path, monkeypatch, available_bytes, limits, alone, of_two):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    place = computer(tmp_path, available_bytes, limits)
    assert [memory.jobs_at_once(builds, *place) for builds in (1, 2)] == [alone, of_two]


@pytest.mark.parametrize("held", [2, 0])
def test_builds_follow_one_another_where_memory_is_short(monkeypatch, held):
    ran = []
    monkeypatch.setattr(bootstrap, "jobs_at_once", lambda builds: held if builds > 1 else 1)
    monkeypatch.setattr(bootstrap, "say", lambda line: None)
    monkeypatch.setattr(bootstrap, "_run_lane", lambda steps: ran.append([step.name for step in steps]) or {})
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "")  # restored afterwards
    monkeypatch.delenv("CMAKE_BUILD_PARALLEL_LEVEL")
    steps = [bootstrap.Step(name, name, (), lambda *_: {}, lane=name) for name in ("build", "rig", "python")]
    bootstrap._run(steps)
    lanes = [["build"], ["rig"], ["python"]] if held else [["build", "rig"], ["python"]]
    assert sorted(lane for lane in ran if lane) == sorted(lanes)
    assert bootstrap.os.environ["CMAKE_BUILD_PARALLEL_LEVEL"] == str(held or 1)
