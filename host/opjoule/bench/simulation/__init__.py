"""The simulated rig: a stated power model, the rig simulator, and a board that is this computer.

The rest of the package uses it only through the device and meter interfaces.
"""
