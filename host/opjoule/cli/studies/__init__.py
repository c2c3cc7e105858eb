"""`studies`: which there are."""
