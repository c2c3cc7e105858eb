"""What a command needs besides the Python environment; imported before that exists."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from opjoule.databases.registry import is_server
from opjoule.devices.profiles import find_profile
from opjoule.devices.programs.binaries import ARCHITECTURES
from opjoule.errors import OpJouleError
from opjoule.toml_file import read_toml


@dataclass(frozen=True)
class Needs:
    """What set-up has to do for a command."""

    loader: bool = False
    simulate: bool = False
    """The simulated rig: simulator and firmware."""
    test: bool = False
    ycsb: bool = False
    virtual: bool = False
    """What the virtual board is built with."""
    board: str = ""
    """Architecture of a board whose loader is built here (aarch64, armhf, amd64), or none."""
    figures: bool = False
    """What figures for print are drawn with."""
    fleet: bool = False
    """What several rigs are reached with."""
    packages: tuple[str, ...] = ()
    """Further packages of the system, for a study's databases."""

    @property
    def sections(self) -> list[str]:
        """The sections of host/packages.txt."""
        virtual = ["virtual"] if self.virtual or self.test else []
        return ["measure", *(["test"] if self.test else []), *virtual, *(["ycsb"] if self.ycsb else [])]


def board_architecture(device: str | None, rig: Path, *, simulated: bool, database: str | None = None) -> str:
    """Architecture of the board to measure; empty where this computer's own loader does.

    A mistake on the command line or in rig.toml gives an empty text: the command itself reports it later.

    Args:
        device: None: the only board of the rig.
        database: that the loader connects to or has inside; None: there is none.
    """
    this_computers = ARCHITECTURES.get(platform.machine(), "")
    here = this_computers if is_server(database or "") else ""
    if simulated:
        return here
    try:
        profile = find_profile(device or _only_device(rig))
        if profile.name == "virtual" or _is_reached_by_ssh(profile.name, rig):
            return profile.architecture
    except (OpJouleError, OSError, ValueError, AttributeError, KeyError):
        return ""
    return here


def _only_device(rig: Path) -> str:
    """The board of rig.toml, where it describes one alone. Raises: ValueError, KeyError, OSError: there is none."""
    [name] = read_toml(rig)["device"]
    return str(name)


def _is_reached_by_ssh(device: str, rig: Path) -> bool:
    """By rig.toml as the standard library reads it: what checks it all needs the environment."""
    if not rig.exists():
        return False
    entry = read_toml(rig)["device"].get(device, {})
    return str(entry.get("connection", "")).startswith("ssh:")
