"""The commands. Only this package knows both the measurement and the simulated rig."""
