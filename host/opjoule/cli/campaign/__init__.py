"""`campaign`: many measurements, here or on a fleet; studies."""
