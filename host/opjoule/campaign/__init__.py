"""One measurement in several conditions: which there are, in what order they are measured, and how they compare."""
