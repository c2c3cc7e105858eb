"""Which board's loader a command needs built on this computer; imported before the Python environment exists."""

from __future__ import annotations

import argparse
import platform

from opjoule.databases.registry import is_server
from opjoule.devices.profiles import find_profile
from opjoule.devices.programs import architecture_of
from opjoule.devices.rig_file import read_rig
from opjoule.errors import OpJouleError


def board_architecture(options: argparse.Namespace) -> str:
    """Architecture of the board to measure, or "" where this computer's own loader does.

    A mistake on the command line or in rig.toml gives "": the command itself says it better, later.
    """
    if options.simulate:
        return ""
    try:
        profile = find_profile(options.device)
        if profile.name == "virtual":
            return profile.architecture
        if read_rig(options.rig).device(profile.name).ssh_target:
            return profile.architecture
    except OpJouleError:
        return ""
    own = architecture_of(platform.machine()) or ""
    return own if is_server(options.db or "") else ""
