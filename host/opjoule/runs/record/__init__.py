"""Run records. Each run has a directory with the user's request, the facts found, the measurement and the results."""
