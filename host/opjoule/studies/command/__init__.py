"""Any program on the board: its energy as a whole, of each phase that it marks, and per operation that it marks."""
