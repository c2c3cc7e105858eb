"""`twin`: fits a simulated board to records."""
