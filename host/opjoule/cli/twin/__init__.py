"""`twin`: a simulated board fitted to records."""
