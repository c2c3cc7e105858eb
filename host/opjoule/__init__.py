"""OpJoule's host software: joules per database operation on single-board computers."""

__version__ = "0.1.0"
