"""`record`: a power trace alone."""
