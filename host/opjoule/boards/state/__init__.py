"""State of a board: its facts, its settings, and their monitoring during a measurement."""
