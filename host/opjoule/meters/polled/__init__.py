"""Meters that are read repeatedly: counters and sensors of the operating system, and testers that answer requests."""
