"""Past runs in a browser: one page, served on loopback."""
