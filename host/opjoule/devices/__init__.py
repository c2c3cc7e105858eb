"""Boards under test: their profiles, rig.toml, and the ways to reach them."""
