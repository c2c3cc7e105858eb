"""`init`: writes rig.toml from answers to questions."""
