"""Energy of a window of the trace, with its uncertainty budget."""
