"""rig.toml, and the board that is built from it."""
