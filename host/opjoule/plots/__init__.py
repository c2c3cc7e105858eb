"""Figures for print, from records alone; the one place that needs matplotlib."""
