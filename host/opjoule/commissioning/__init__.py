"""The rig proves itself on the desk, step by step (docs/how-to/commission-the-rig.md)."""
