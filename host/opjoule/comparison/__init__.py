"""Several records together: contrasts, winners, pages, tables of a study."""
