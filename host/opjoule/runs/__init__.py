"""A run: plan and execution (measuring), the record it leaves, its evaluation, and the studies it belongs to."""
