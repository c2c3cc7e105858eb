"""`virtual-board`: the emulated board's image."""
