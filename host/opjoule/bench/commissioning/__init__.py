"""Checks of a rig on the desk, step by step (docs/how-to/commission-the-rig.md)."""
