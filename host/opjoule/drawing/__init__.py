"""Drawings of every page and figure: scales, tracks, SVG pieces, and the time chart that runs in the browser."""
