"""The storage medium under test: finding it, its free space, and the databases kept on it."""
