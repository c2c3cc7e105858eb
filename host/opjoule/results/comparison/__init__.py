"""Comparisons of several records: contrasts, winners, pages, tables of a study."""
