"""A run record as people read it: a page, a terminal summary, a figure."""
