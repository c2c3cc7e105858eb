"""Faults for host/validation/fault_matrix.py, by what they strike. SIMULATED."""
