"""What stands around a measurement: the simulated rig with its twins, and commissioning. Nothing else uses it."""
