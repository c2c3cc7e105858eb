"""`record`: a power trace without a board."""
