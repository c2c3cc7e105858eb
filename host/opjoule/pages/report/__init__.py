"""Presentation of a run record: a page, a summary on the terminal, a figure."""
