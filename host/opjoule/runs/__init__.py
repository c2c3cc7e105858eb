"""A run: its plan and execution (measuring), the record that it leaves, its evaluation, and the studies it belongs to."""
