"""One measurement in several conditions: the conditions, their order, and their comparison."""
