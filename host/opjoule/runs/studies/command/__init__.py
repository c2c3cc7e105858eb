"""Any program on the board: the energy of the whole program, of each marked phase, and per marked operation."""
