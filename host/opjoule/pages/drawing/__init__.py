"""Drawings for pages and figures: scales, tracks, SVG pieces, and the time chart that runs in the browser."""
