"""`measure.py sudoers`: prints the script that installs opjoule-root on a board."""

from __future__ import annotations

from opjoule.cli.short_commands import SudoersOptions
from opjoule.devices.rig.file import read_rig
from opjoule.devices.rig.root_helper import install_script
from opjoule.errors import BadInput
from opjoule.files import write_whole


def run_sudoers(options: SudoersOptions) -> int:
    """Prints it; nothing is connected to.

    Raises: BadInput: rig.toml does not describe the board, or no user is named.
    """
    described = read_rig(options.rig).device(options.device)
    target = (described.ssh_target or "").removeprefix("ssh://")
    user = options.user or target.rpartition("@")[0]
    if not user:
        raise BadInput(f"rig.toml does not say who connects to {options.device}: add --user NAME")
    script = install_script(described, user)
    if options.out:
        write_whole(options.out, script.encode())
    else:
        print(script, end="")
    return 0
