"""What is connected to the sensor in a step: what the person at the desk has to do for it."""

from __future__ import annotations

from enum import Enum


class Setup(Enum):
    """Something to connect, in words."""

    UNPLUGGED = (
        "Shut the board down and unplug it from the sensor: supply on, nothing behind VIN\N{MINUS SIGN}."
    )
    FUSE_PULLED = (
        "Plug the board in again, with everything that is ever plugged into it (network, media, sync line, HDMI, "
        "debug adapter), and take the supply's fuse out."
    )
    LOAD_A = (
        "Unplug the board, put the fuse back. Connect the known resistor (load A) behind VIN\N{MINUS SIGN}, in the "
        "board's place. It gets hot."
    )
    LOAD_B = "Take load A off, connect a second resistor (load B: about 3.3 ohm, 10 W) in its place."
    BOTH = "Connect load A beside load B, in parallel."
    BOTH_HOT = "Leave both connected while they warm up."
    A_HOT = "Take load B off; load A stays."
    B_HOT = "Take load A off and connect load B in its place, quickly."
    BOARD = "Take every load off, plug the board in with all it needs to work, and wait until it has booted."
    SECOND_METER = (
        "Put the second meter in series with the rig's sensor, and wait until the board has booted."
    )
