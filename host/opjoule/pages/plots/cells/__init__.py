"""Plots of the cells of a comparison: each module has its own in `PLOTS`."""
