"""`measure.py restore`: puts a board back after a measurement that was cut off."""

from __future__ import annotations

from pathlib import Path

from opjoule.cli.places import ROOT
from opjoule.cli.short_commands import RestoreOptions
from opjoule.devices.preparation.recovery import recover
from opjoule.devices.rig.board import open_shell
from opjoule.devices.rig.file import read_rig


def run_restore(options: RestoreOptions) -> int:
    """Prints what was put back; exit status 1 if something could not be.

    Raises: BadInput: rig.toml does not describe the board. LinkFault: it cannot be reached.
    """
    described = read_rig(options.rig).device(options.device)
    fetched: Path = options.out or ROOT / "runs" / "recovered"
    shell = open_shell(described)
    try:
        media = [medium.path for medium in described.storage.values()]
        done, left = recover(shell, media, fetched, kept=options.kept)
    finally:
        shell.close()
    for line in done + left:
        print(line)
    print(f"{options.device} could not be put back wholly" if left else f"{options.device} is as it was")
    return 1 if left else 0
