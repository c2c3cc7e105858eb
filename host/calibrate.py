#!/usr/bin/env python3
"""Calibrates the rig's sensor against a reference: `host/measure.py calibrate`, which does its own set-up."""

import os
import sys
from pathlib import Path

import this_computer

MEASURE = Path(__file__).resolve().parent / "measure.py"

if __name__ == "__main__":
    this_computer.end_if_unable()
    os.execv(MEASURE, [str(MEASURE), "calibrate", *sys.argv[1:]])
