"""`commission`: proves a rig before its first figure."""
