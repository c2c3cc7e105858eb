"""What rig.toml describes, and the board that is put together from it."""
