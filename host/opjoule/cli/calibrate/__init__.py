"""`calibrate`: a sensor's calibration from points."""
