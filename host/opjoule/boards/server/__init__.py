"""A server database on the board."""
