"""A record in other programs' formats."""
