"""`compare`: comparison of records."""
