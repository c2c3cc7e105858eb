#!/usr/bin/env python3
"""Lists, shows, checks, exports and prunes records: `host/measure.py runs`, which does its own set-up."""

import os
import sys
from pathlib import Path

import this_computer

MEASURE = Path(__file__).resolve().parent / "measure.py"

if __name__ == "__main__":
    this_computer.end_if_unable()
    os.execv(MEASURE, [str(MEASURE), "runs", *sys.argv[1:]])
