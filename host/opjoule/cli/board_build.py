"""Which board's loader a command needs built on this computer; imported before the Python environment exists."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

from opjoule.databases.registry import is_server
from opjoule.devices.profiles import find_profile
from opjoule.devices.programs.binaries import architecture_of
from opjoule.errors import OpJouleError
from opjoule.toml_file import read_toml


def board_architecture(options: argparse.Namespace) -> str:
    """Architecture of the board to measure, or "" where this computer's own loader does.

    A mistake on the command line or in rig.toml gives "": the command itself says it better, later.
    """
    own = architecture_of(platform.machine()) or ""
    here = own if is_server(options.db or "") else ""
    if options.simulate:
        return here
    try:
        profile = find_profile(options.device or _only_device(options.rig))
        if profile.name == "virtual":
            return profile.architecture
        if _is_reached_by_ssh(profile.name, options.rig):
            return profile.architecture
    except (OpJouleError, OSError, ValueError, AttributeError, KeyError):
        return ""
    return here


def _only_device(rig: Path | None) -> str:
    """The board of rig.toml, where it describes one alone. Raises: ValueError, KeyError, OSError: there is none."""
    [name] = read_toml(Path(rig or "rig.toml"))["device"]
    return str(name)


def _is_reached_by_ssh(device: str, rig: Path | None) -> bool:
    """By rig.toml as the standard library reads it: what checks it all needs the environment."""
    path = Path(rig or "rig.toml")
    if not path.exists():
        return False
    entry = read_toml(path)["device"].get(device, {})
    return str(entry.get("connection", "")).startswith("ssh:")
