"""Fixtures of the tests of boards: a rig with a real sshd, and a virtual board."""

from loopback_rig import rig
from virtual_board import image, machine

__all__ = ["image", "machine", "rig"]
