"""`measure.py init`: asks questions and writes rig.toml."""

import os
import re
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.base.files import replacing
from opjoule.base.scripts import CALIBRATIONS
from opjoule.base.settings import MEDIUM, as_struct
from opjoule.base.terminal import Prompts, Stopped, line_of_stdin, refusing
from opjoule.base.toml_file import toml_string
from opjoule.boards.profiles import find_profile, known_profiles
from opjoule.boards.rig import check_sync, read_rig
from opjoule.cli.rig_commands import InitOptions
from opjoule.energy.error_bounds import Shunt
from opjoule.meters.interface import LABEL
from opjoule.meters.registry import KINDS, open_meter
from opjoule.meters.serial.meter import KIND as SERIAL
from opjoule.meters.serial.options import GENUINE, KELVIN, SHUNT, SHUNT_PPM, TOLERANCE, SerialOptions
from opjoule.meters.serial.port import lasting_name, ports_present
from opjoule.runs.measuring.supply_path import ADVISED_SHUNT_OHM, RIG_FILE, SMALL_SHUNT, shunt_words

_HEAD = "# One rig: its meter and its boards. Checked by: host/measure.py doctor\n\n"
_PROMPTS: Final = Prompts(lambda question: line_of_stdin(question, sys.stdout))
_YES_OR_NO: Final = refusing(("yes", "no").__contains__, "neither yes nor no")


def run_init(options: InitOptions, prompts: Prompts = _PROMPTS) -> int:
    """Asks for meter, board, media and sync line; writes the file once all answers are valid.

    Raises: BadInput: the file cannot be written there, or standard input ends.
    """
    path: Path = options.rig
    _check_place(path)
    try:
        if path.exists() and prompts.text(f"{path} exists; replace it (yes, no)?", _YES_OR_NO, "no") == "no":
            print(f"{path} was left as it is.")
            return 0
        text = _HEAD + _ask_meter(prompts) + _ask_board(prompts)
    except Stopped:
        raise BadInput(
            f"init asks questions: run it in a terminal, or write {path} by hand (docs/how-to/connect-a-board.md)"
        ) from None
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
        read_rig(temporary)
    print(f"{path} written. Next: host/measure.py doctor")
    return 0


def _check_place(path: Path) -> None:
    """Checks, before any question, that the file can be written. Raises: BadInput: it cannot."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise BadInput(f"--rig {path}: there is no folder {folder}: create it, or give another place")
    if path.is_dir():
        raise BadInput(f"--rig {path} is a directory: give the name of a file, for example {path}/rig.toml")
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise BadInput(f"--rig {path} cannot be written: {folder} is not writable for you: give another place")


def _ask_meter(prompts: Prompts) -> str:
    ports = ports_present()
    listed = ", ".join(ports) or "none (plug the meter in, or type the port that it will have)"
    print(f"Serial ports with a device here: {listed}")
    first = lasting_name(ports[0].split(" ")[0] if ports else "/dev/ttyACM0")
    others = ", ".join(kind for kind in KINDS if kind != SERIAL.name)
    print(f"Other kinds of meter (docs/reference/meters.md): {others}")
    port = prompts.text("Port of the meter, or another kind", _meter, first)
    if port.partition(":")[0] in KINDS and not port.startswith(f"{SERIAL.name}:"):
        return f"[meter]\nport = {toml_string(port)}\n\n"
    ohm = prompts.text(
        "Its shunt in ohm, as printed on it (R100 is 0.1, R020 is 0.02)",
        lambda ohm: _serial({SHUNT: ohm}),
        f"{Shunt.ohm:g}",
    )
    unmarked = f"{100 * Shunt.tolerance:g}"
    tolerance = prompts.text(
        f"Tolerance of the shunt in % ({unmarked} if unknown)",
        lambda answer: _serial({TOLERANCE: f"{answer.rstrip(' %')}%"}),
        unmarked,
    )
    tolerance = tolerance.rstrip(" %")
    ppm = prompts.text(
        "Its temperature coefficient in ppm/K, from its data sheet",
        lambda ppm: _serial({SHUNT_PPM: ppm}),
        f"{1e6 * Shunt.per_k:g}",
    )
    kelvin = prompts.text("Is it sensed at its own pads, or does it have four terminals (yes, no)?", _YES_OR_NO, "no")
    genuine = prompts.text("Is the chip certainly genuine, not from a cheap module (yes, no)?", _YES_OR_NO, "no")
    label = prompts.text("Name of the sensor, as on a sticker on its breakout", _label, _free_label())
    about = {
        SHUNT: ohm,
        TOLERANCE: f"{tolerance}%",
        **({SHUNT_PPM: ppm} if float(ppm) != 1e6 * Shunt.per_k else {}),
        **{key: answer for key, answer in ((KELVIN, kelvin), (GENUINE, genuine)) if answer == "yes"},
        LABEL: label,
    }
    options = ",".join(f"{key}={value}" for key, value in about.items())
    name = f"serial:{port.removeprefix('serial:')},{options}"
    if float(ohm) > ADVISED_SHUNT_OHM:
        print(
            f"Advised: {SMALL_SHUNT}, which drops a fifth of the voltage of the usual 0.1 ohm; doctor "
            "computes the voltage left for the board"
        )
    print(f"Shunt: {shunt_words(float(ohm), float(tolerance) / 100, f'{SHUNT}= in {RIG_FILE}')}")
    known = " and ".join(str(path) for path in _calibrations(label))
    print(
        f"Sensor {label}: {known} will be used: it must belong to this very breakout"
        if known
        else f"Sensor {label}: not calibrated yet; host/calibrate.py reduces its errors, under this name"
    )
    return f"[meter]\nport = {toml_string(name)}\n\n" + _ask_wire(prompts)


def _ask_wire(prompts: Prompts) -> str:
    """Asks for the wire between the voltage's sense point and the board; empty text if it is unknown."""
    question = "Resistance of the wire from the voltage's sense point to the board and back, in ohm (empty if unknown)"
    wire = refusing(
        lambda answer: not answer or 0.0 <= float(answer) <= 1.0,
        "not a resistance from 0 to 1 ohm; 30 cm of AWG 20, there and back, have 0.02 ohm",
    )
    sense_ohm = prompts.text(question, wire, "")
    return f"[supply]\nsense_ohm = {float(sense_ohm):g}\n\n" if sense_ohm else ""


def _meter(answer: str) -> None:
    """Raises: BadInput: the port is missing, or the name of another kind of meter is invalid."""
    if not answer:
        raise BadInput("the meter needs a port")
    kind, colon, _ = answer.partition(":")
    if kind in KINDS and (colon or kind != SERIAL.name):
        open_meter(answer)


def _free_label() -> str:
    """A name without a calibration: pressing Enter must not give a new breakout the calibration of another."""
    return next(label for number in count(1) if not _calibrations(label := f"bench-{number}"))


def _calibrations(label: str) -> list[Path]:
    return sorted(CALIBRATIONS.glob(f"{label}@0x*.toml"))


def _label(answer: str) -> None:
    if not answer:
        raise BadInput("give the sensor a name: without one its calibration could not be found again")
    _serial({LABEL: answer})


def _serial(options: Mapping[str, str]) -> None:
    """Checks options of a serial meter. Raises: BadInput."""
    as_struct(dict(options), SerialOptions, "meter option", texts=True)


def _ask_board(prompts: Prompts) -> str:
    boards = known_profiles()
    name = prompts.text("Board", refusing(boards.__contains__, f"none of {', '.join(boards)}"), "rpi4")
    profile = find_profile(name)
    reached = refusing(
        lambda answer: bool(re.fullmatch("local|ssh:.+", answer)),
        "neither ssh:USER@ADDRESS nor local; for example ssh:pi@raspberrypi.local",
    )
    connection = prompts.text("Connection: ssh:USER@ADDRESS, or 'local' if this computer is the board", reached)
    sync = prompts.text("Sync line on the board ('none' without a wire)", check_sync, profile.sync or "none")
    lines = [
        f"[device.{name}]",
        f"connection = {toml_string(connection)}",
        f"sync = {toml_string(sync)}",
        "",
        f"[device.{name}.{MEDIUM}]",
    ]
    absolute = refusing(lambda answer: answer[:1] in ("", "/"), "not an absolute path; for example /mnt/ssd")
    for medium in profile.media:
        folder = prompts.text(f"Directory on {medium} for databases (empty if there is none)", absolute, "")
        if folder:
            lines.append(f"{medium} = {toml_string(folder)}")
    return "\n".join(lines) + "\n"
