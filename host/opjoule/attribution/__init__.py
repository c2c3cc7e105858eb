"""Whose joules they are: energy by kind of operation and by activity, from one power trace and what the board logged."""
