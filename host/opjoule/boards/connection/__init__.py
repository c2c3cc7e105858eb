"""Connection to a board: a local or ssh shell, its folders, its lock, and changes that are undone."""
