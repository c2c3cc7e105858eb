"""Fit of a simulated board's parameters to measured records: `measure.py twin --fit`. Needs only a normal record."""
