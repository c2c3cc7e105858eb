"""Records of loader and probe on the board: operations, events, system samples."""
