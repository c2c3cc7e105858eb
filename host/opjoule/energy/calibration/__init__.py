"""Calibration of a sensor against a reference, and the files of calibrations (docs/how-to/calibrate.md)."""
