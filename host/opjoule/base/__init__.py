"""What every package uses: errors, units, files, settings in TOML, the terminal, and where the program lies."""
