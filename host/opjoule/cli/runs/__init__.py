"""`runs`: work on existing records."""
