"""How a sensor is calibrated against a reference, and where its calibration is kept (docs/how-to/calibrate.md)."""
