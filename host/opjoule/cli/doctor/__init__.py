"""`doctor`: what keeps a rig from measuring."""
