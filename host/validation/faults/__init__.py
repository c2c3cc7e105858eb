"""Faults for host/validation/fault_matrix.py, one module for each place where they strike. SIMULATED."""
