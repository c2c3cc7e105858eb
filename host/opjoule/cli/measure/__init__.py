"""What host/measure.py does without a command: one measurement."""
