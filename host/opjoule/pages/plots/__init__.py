"""Figures for print, made only from records. No other package needs matplotlib."""
