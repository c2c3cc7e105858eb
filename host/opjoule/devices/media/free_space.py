"""How much there is room for on a board's medium."""

from __future__ import annotations

from opjoule.devices.connection.shell import Shell
from opjoule.devices.media.medium import Medium
from opjoule.devices.on_board import script

_SCRIPT = script("free_space.sh")


def read_free_bytes(shell: Shell, medium: Medium) -> int | None:
    """Bytes that the board's user may still write there [B]; None where the board does not say.

    Of a medium whose device is not mounted yet it is the size of the device: never less than what will be free.

    Raises: LinkFault: no connection.
    """
    ran = shell.run(["sh", "-c", _SCRIPT, "sh", medium.path, medium.device])
    words = ran.text().split()
    if ran.status != 0 or len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    blocks, block_bytes = map(int, words)
    return blocks * block_bytes
