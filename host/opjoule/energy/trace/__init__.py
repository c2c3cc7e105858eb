"""The power trace: samples on the meter clock, gaps known as gaps, and its files."""
