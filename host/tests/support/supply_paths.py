"""The path between a supply and a board."""

from __future__ import annotations

from opjoule.boards.profiles import find_profile
from opjoule.boards.rig import RigSupply
from opjoule.runs.measuring.supply_path import supply_path


def path_of(board: str, meter: str = "serial:/dev/ttyACM0", **supply):
    return supply_path(find_profile(board), meter, "rig.toml", RigSupply(**supply))
