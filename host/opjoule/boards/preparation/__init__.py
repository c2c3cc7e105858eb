"""Preparation of a board for a measurement, and its reversal."""
