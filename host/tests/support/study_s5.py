"""What the tests of study S5 share: its places and sizes, and files of connections."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STUDY = ROOT / "studies" / "s5"
PROBE = ROOT / "loader-cpp" / "probe"
TESTS = ("T1", "T2", "T3A", "T3B", "T4A", "T4B", "T5A", "T5B")
SMALL = ("--opens", "2", "--rows", "8", "--by-state", "3", "--by-zip", "2", "--runs", "2")
PASSWORD = "not-for-records"


def connections(folder: Path, **lines: str) -> list[str]:
    """Option of the job and the host with a file of such lines; _ in a name stands for -."""
    file = folder / "connections"
    file.write_text("# of the test\n" + "".join(f"{name.replace('_', '-')} = {line}\n" for name, line in lines.items()))
    return ["--connections", str(file)]
