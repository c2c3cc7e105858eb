"""`sudoers`: what is done as root on a board, and a sudoers file for it."""
