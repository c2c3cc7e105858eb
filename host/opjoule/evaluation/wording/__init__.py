"""The words of each kind of study for its results."""
