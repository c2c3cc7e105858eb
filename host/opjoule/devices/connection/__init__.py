"""How a board is reached: a shell here or over ssh, its folders, its lock, changes that are undone."""
