"""`import`: power traces of other programs."""
