"""What raw/ says: clocks aligned, energies integrated and attributed, result.json. Knows no meter and no board."""
