"""Whose joules they are: energy by kind of operation and by activity, from power and what the board logged."""
