"""`calibrate`: calibration of a sensor from measured points."""
