"""`init`: rig.toml, by asking."""
