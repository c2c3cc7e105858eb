"""What a board is like: its facts, its settings, and the watch over its state while it is measured."""
