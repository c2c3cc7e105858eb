"""The job of study S3 in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STUDY = ROOT / "studies" / "s3"
PROBE = ROOT / "loader-cpp" / "probe"
SYSTEMS = ("berkeleydb", "duckdb", "postgresql", "sqlite")


def job(*arguments: str, first: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Runs the job; Python looks for modules in `first` before anywhere else."""
    environment = {name: value for name, value in os.environ.items() if name != "OPJOULE_MARKS"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (*first, PROBE, STUDY.parent)))
    command = [sys.executable, str(STUDY / "job.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
