"""Meters that are read over and over: counters and sensors of the operating system."""
