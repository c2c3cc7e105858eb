"""`doctor`: finds what prevents a rig from measuring."""
