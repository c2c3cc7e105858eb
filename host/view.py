#!/usr/bin/env python3
"""Shows past runs in a browser: `host/measure.py view`, which does its own set-up."""

import os
import sys
from pathlib import Path

import this_computer

MEASURE = Path(__file__).resolve().parent / "measure.py"

if __name__ == "__main__":
    this_computer.end_if_unable()
    os.execv(MEASURE, [str(MEASURE), "view", *sys.argv[1:]])
