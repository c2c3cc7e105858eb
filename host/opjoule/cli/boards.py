"""`measure.py restore`, `sudoers` and `virtual-board`: work on a board outside of a measurement."""

import os
import shlex
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from opjoule.base.errors import BadInput
from opjoule.base.files import write_whole
from opjoule.base.scripts import ROOT, RUNS
from opjoule.boards.preparation import recover
from opjoule.boards.rig import install_script, read_rig
from opjoule.boards.rig_board import open_shell
from opjoule.boards.virtual.image import get_image
from opjoule.boards.virtual.machine import Machine
from opjoule.cli.rig_commands import RestoreOptions, SudoersOptions, VirtualBoardOptions


def run_restore(options: RestoreOptions) -> int:
    """Restores a board and prints what was restored; exit status 1 if something could not be.

    Raises: BadInput: rig.toml does not describe the board. LinkFault: the board cannot be reached.
    """
    described = read_rig(options.rig).device(options.device)
    fetched: Path = options.out or RUNS / "recovered"
    with closing(open_shell(described)) as shell:
        done, left = recover(shell, described.media.values(), fetched, kept=options.kept)
    for line in done + left:
        print(line)
    print(f"some changes of {options.device} could not be undone" if left else f"{options.device} is restored")
    return 1 if left else 0


def run_sudoers(options: SudoersOptions) -> int:
    """Prints the script that installs opjoule-root on a board, without connecting to the board.

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


def run_virtual_board(options: VirtualBoardOptions) -> int:
    """Builds the virtual board, or starts one until Ctrl-C.

    Raises: BadInput: a program is missing, or root is needed. DeviceFault: the build or the start failed.
    """
    image = get_image(ROOT / "build" / "virtual-board", lambda line: print(line, file=sys.stderr, flush=True))
    print(f"virtual board: {image.folder}")
    if options.action == "build":
        return 0
    with (
        tempfile.TemporaryDirectory(prefix=f"opjoule-board-{os.getpid()}-") as place,
        closing(Machine(image, Path(place) / "machine")) as machine,
        suppress(KeyboardInterrupt),
    ):
        ssh_options = image.ssh_options(machine.port, Path(place) / "known_hosts")
        print("log in with (user rig has sudo, user plain does not):")
        print("  " + shlex.join(["ssh", *ssh_options, "rig@127.0.0.1"]))
        print("stop it with Ctrl-C", flush=True)
        while machine.is_running():
            time.sleep(0.5)
    return 0
