"""Evaluates raw/: aligns clocks, integrates and attributes energies, writes result.json. It opens no meter or board."""
