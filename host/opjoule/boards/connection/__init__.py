"""Connection to a board: a local or ssh shell, its sessions, and changes that are undone."""
