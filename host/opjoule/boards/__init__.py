"""Boards under test: their profiles, rig.toml, and connections."""
