"""Every quantity of a result, as tables: key, unit, words, formula, and the groups that it depends on."""
