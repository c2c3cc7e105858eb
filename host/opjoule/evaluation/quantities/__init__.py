"""Every quantity of a result, as tables: its key, unit, words, formula, and what it rests on."""
