"""A board outside of a measurement."""
