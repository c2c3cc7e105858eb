"""One measurement: the job of host/measure.py without a command."""
