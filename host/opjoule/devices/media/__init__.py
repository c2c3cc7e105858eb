"""The storage medium under test: found, its free space, the databases kept on it."""
