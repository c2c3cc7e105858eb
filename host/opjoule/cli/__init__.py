"""The commands. Only this package imports both the measurement and the simulated rig."""
