"""The simulated board's parameters from measured records: `measure.py twin --fit`. Reads what every real record has."""
