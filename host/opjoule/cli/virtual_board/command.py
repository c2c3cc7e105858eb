"""`measure.py virtual-board`: builds the virtual board, or starts one to log in to."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

from opjoule.cli.places import ROOT
from opjoule.cli.short_commands import VirtualBoardOptions
from opjoule.devices.virtual.image import get_image
from opjoule.devices.virtual.machine import Machine


def run_virtual_board(options: VirtualBoardOptions) -> int:
    """Builds, or starts until Ctrl-C.

    Raises: BadInput: a program is missing, or root is needed. DeviceFault: the build or the start failed.
    """
    image = get_image(ROOT / "build" / "virtual-board", lambda line: print(line, file=sys.stderr, flush=True))
    print(f"virtual board: {image.folder}")
    if options.action == "build":
        return 0
    with tempfile.TemporaryDirectory(prefix=f"opjoule-board-{os.getpid()}-") as place:
        machine = Machine(image, Path(place) / "machine")
        try:
            ssh_options = image.ssh_options(machine.port, Path(place) / "known_hosts")
            print("log in with (rig has sudo, plain has not):")
            print("  " + shlex.join(["ssh", *ssh_options, "rig@127.0.0.1"]))
            print("it ends with Ctrl-C", flush=True)
            while machine.is_running():
                time.sleep(0.5)
        except KeyboardInterrupt:
            return 0
        finally:
            machine.close()
    return 0
