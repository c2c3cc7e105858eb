"""`restore`: a board put back after a measurement that could not."""
