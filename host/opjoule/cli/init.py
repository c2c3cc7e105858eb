"""`measure.py init`: writes rig.toml by asking."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.prompt import Confirm, Prompt
from serial.tools import list_ports

from opjoule.devices.profiles import find_profile, known_profiles
from opjoule.devices.rig_file import read_rig
from opjoule.errors import BadInput

_HEAD = "# One rig: its meter and its boards. Checked by: host/measure.py doctor\n\n"


def run_init(options: argparse.Namespace) -> int:
    """Asks for meter, board, media and sync line; writes the file once everything is answered."""
    console = Console(highlight=False)
    path: Path = options.rig
    try:
        if path.exists() and not Confirm.ask(f"{path} exists; replace it?", default=False):
            console.print(f"{path} was left as it is.")
            return 0
        text = _HEAD + _ask_meter(console) + _ask_board(console)
    except EOFError:
        raise BadInput(
            f"init asks questions: run it in a terminal, or write {path} by hand (docs/how-to/connect-a-board.md)"
        ) from None
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)
    read_rig(path)
    console.print(f"{path} written. Next: host/measure.py doctor")
    return 0


def _ask_meter(console: Console) -> str:
    ports = sorted(port.device for port in list_ports.comports())
    console.print(
        "Serial ports here: "
        + (", ".join(ports) or "none (plug the meter in, or type the port it will have)")
    )
    port = Prompt.ask("Port of the meter", default=ports[0] if ports else "/dev/ttyACM0")
    return f"[meter]\nport = {_text('serial:' + port)}\n\n"


def _ask_board(console: Console) -> str:
    name = Prompt.ask("Board", choices=known_profiles(), default="rpi4")
    profile = find_profile(name)
    connection = Prompt.ask(
        "Connection: 'local' if this computer is the board, or ssh:USER@ADDRESS", default="local"
    )
    sync = Prompt.ask("Sync line on the board ('none' without a wire)", default=profile.sync)
    lines = [
        f"[device.{name}]",
        f"connection = {_text(connection)}",
        f"sync = {_text(sync)}",
        "",
        f"[device.{name}.storage]",
    ]
    for medium in profile.media:
        folder = Prompt.ask(f"Directory on {medium} for databases (empty if there is none)", default="")
        if folder:
            lines.append(f"{medium} = {_text(folder)}")
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return json.dumps(value)  # a TOML basic string is a JSON string
