"""Evaluates raw/: aligns clocks, integrates and attributes energies, writes result.json. Opens no meter or board."""
