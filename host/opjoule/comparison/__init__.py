"""What several records say together: contrasts, winners, pages, tables of a study."""
