"""Traces that other programs recorded: text tables of any layout, and the files of the PPK2 and the Joulescope.

`trace_file.py` reads a file of any kind. `text_table.py` finds separator, header and rows of a text, `columns.py` knows
the programs and says which column is the time, the current, the voltage and the power, `cell_values.py` turns their
cells into numbers and times, and `table_signals.py` checks that they belong to each other. `program_files.py` reads two
file formats.
"""
