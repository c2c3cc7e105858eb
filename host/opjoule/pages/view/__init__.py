"""Past runs in a browser: one page, which is served on loopback."""
