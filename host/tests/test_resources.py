"""Tests of an analysis's memory: an array takes the place of a freed one, and at the end the system gets it back."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
from opjoule.base.resources import analysis_resources

ARRAY_BYTES = 100_000_000
"""glibc alone returns an array of this size to the system as soon as it is freed."""


def new_pages() -> int:
    """Number of pages that an array takes from the system."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    np.ones(ARRAY_BYTES // 8)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def in_own_process(script: str) -> list[int]:
    """Numbers that a script prints; no memory that earlier tests have freed is left there."""
    command = [sys.executable, "-c", f"from test_resources import *\n{script}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [int(word) for word in ended.stdout.split()]


def test_an_array_uses_the_memory_of_one_that_was_freed():
    usual, within = in_own_process(
        "new_pages(); usual = new_pages()\nwith analysis_resources(): new_pages(); print(usual, new_pages())"
    )
    assert within < usual / 10


def test_freed_memory_is_returned_at_the_end():
    with analysis_resources():
        new_pages()
        within = resident_bytes()
    assert resident_bytes() < within - ARRAY_BYTES / 2
