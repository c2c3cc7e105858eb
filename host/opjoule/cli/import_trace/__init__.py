"""`import`: power traces recorded by other programs."""
