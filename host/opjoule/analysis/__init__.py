"""A record in the hands of a user's own program, and in other programs' formats."""
