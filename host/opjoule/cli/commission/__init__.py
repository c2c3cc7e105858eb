"""`commission`: checks a rig before its first measurement."""
