"""`compare`: records side by side."""
