"""Traces that other programs recorded: text tables of any layout, and the files of the PPK2 and the Joulescope.

`trace_file.py` reads a file of any kind. `text_table.py` finds separator, header and rows of a text, `columns.py` says
which column is the time, the current, the voltage and the power, `cell_values.py` turns their cells into numbers and
times, and `agreement.py` checks that they belong to each other. `ppk2_file.py` and `jls_file.py` read two file formats.
"""
