"""The step of the medium: checks that bytes written to its path reach this medium, and only this."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.base.errors import DeviceFault
from opjoule.base.settings import MEDIUM
from opjoule.bench.commissioning.desk import CheckedFigure, Defects, DeskRecording, OpenDesk, Setup, Verdict
from opjoule.bench.commissioning.sync_line import by_exchanges
from opjoule.boards.board import Board
from opjoule.boards.board_state import device_number
from opjoule.boards.rig_board import CHIP_MS, pattern

BYTES_SHARE_MAX: Final = 0.02
SENSOR_SHARE_MAX: Final = 0.1
"""Largest response of the medium's sensor to busy processors, as a share of its response to the medium."""
KINDS: Final = {"sd": ("mmcblk",), "emmc": ("mmcblk",), "ssd-usb2": ("sd",), "ssd-usb3": ("sd",)}
"""Medium -> prefixes of the kernel's name of its device (Documentation/admin-guide/devices.txt)."""
REST_S: Final = 2.0
_WRITE: Final = (
    'dd if=/dev/zero of="$1" bs=1048576 count="$2" conv=fsync 2>/dev/null && '
    '{ sync -f "$1" 2>/dev/null || sync; }; s=$?; rm -f -- "$1"; exit $s'
)


@dataclass(frozen=True)
class FoundMedium:
    """The board kernel's statements about the medium."""

    name: str
    """Name that --storage takes."""
    path: str
    path_number: str = ""
    """MAJOR:MINOR of the device that contains the path; empty if there is none, or it is unknown."""
    path_device: str = ""
    stated: str = ""
    """`device` of rig.toml."""
    stated_number: str = ""
    known: bool = True
    """Whether the kernel was asked; a simulated board's kernel cannot answer."""


@dataclass(frozen=True)
class WrittenMedium:
    """The recording of a file that was written and synced."""

    recorded: DeskRecording
    medium: FoundMedium
    asked_bytes: int
    sensor: int = 0
    """Number of the additional sensor in the medium's supply; 0: there is none."""


def write_file(board: Board, size_bytes: int, tag: str) -> None:
    """Writes a file to the medium, syncs it and removes it. Raises: DeviceFault: it was not written."""
    path = f"{board.medium.path.rstrip('/')}/opjoule-commissioning-{tag}"
    command = ["sh", "-c", _WRITE, "sh", path, str(size_bytes >> 20)]
    run = board.runner.start(command, f"write-{tag}", None)
    if status := run.wait():
        raise DeviceFault(
            f"{size_bytes >> 20} MiB could not be written to {path} (status {status}): is the medium full or read-only?"
        )


def take_medium(desk: OpenDesk, name: str) -> WrittenMedium:
    """Records the board at rest, with busy processors, and while a file is written to the medium."""
    desk.set_up(Setup.BOARD)
    size = desk.pace.written_bytes
    with desk.prepared() as board, desk.recording("medium", board) as running:
        running.begin_files("rest")
        running.wait(REST_S)
        running.begin_files("processors")
        board.probe.play_signature(pattern(8, REST_S), CHIP_MS)
        running.begin_files("written")
        write_file(board, size, "medium")
        running.begin_files("behind")
        medium = find_medium(board, name)
        running.catch_up_to(board.probe.clock_exchange().far_received_ns + 1)
        sensor = board.medium.sensor
    return WrittenMedium(running.recorded(), medium, size, sensor)


def find_medium(board: Board, name: str) -> FoundMedium:
    """Asks the board's kernel for the devices of the path and of rig.toml's `device`."""
    place = board.medium
    if board.facts()["connection"] == "simulated":
        return FoundMedium(name, place.path, known=False)
    run = board.shell.run
    number = device_number(run(["stat", "-c", "%d", place.path]).text().strip())
    link = run(["readlink", f"/sys/dev/block/{number}"]).text().strip()
    stated = ""
    if place.device:
        device = run(["stat", "-L", "-c", "0x%t:0x%T", place.device]).text().strip()
        stated = device_number(device)
    return FoundMedium(name, place.path, number if link else "", link.rpartition("/")[2], place.device, stated)


def judge_medium(taken: WrittenMedium) -> Verdict:
    """Judges whether the bytes went to the intended medium, and whether its own sensor responded."""
    system = taken.recorded.system.get("written")
    column = system["device_written_bytes"].to_numpy() if system is not None and len(system) else np.zeros(1)
    written_bytes = float(column[-1] - column[0])
    share = written_bytes / taken.asked_bytes
    medium = taken.medium
    figures = {
        "written_bytes": CheckedFigure(written_bytes, "B", f"{taken.asked_bytes} B within {100 * BYTES_SHARE_MAX:g} %")
    }
    faults = _wrong_device(medium)
    where = medium.path_device or medium.path
    if share < BYTES_SHARE_MAX:
        faults.add(
            f"of {taken.asked_bytes >> 20} MiB written to {medium.path} the kernel counts {100 * share:.1f} % at "
            f"{where}: the path is not on {medium.name}",
            f"mount the medium there, or correct the path of {medium.name} in rig.toml ('findmnt -T PATH' on the "
            "board names the device)",
        )
    elif abs(share - 1) > BYTES_SHARE_MAX:
        faults.add(
            f"of {taken.asked_bytes >> 20} MiB the kernel counts {100 * share:.1f} % at {where}",
            "end other writers there (logs, swap, updates); a file system that compresses or keeps copies "
            "gives another count: use ext4",
        )
    words = f"{written_bytes / 2**20:.0f} of {taken.asked_bytes >> 20} MiB at {where}"
    if taken.sensor:
        figures[f"{MEDIUM}_with_processors"] = _own_sensor(taken, faults)
    return Verdict.of(words, faults, figures)


def _wrong_device(medium: FoundMedium) -> Defects:
    faults, begins = Defects(), KINDS.get(medium.name, ())
    if not medium.known:
        return faults
    if not medium.path_number:
        faults.add(
            f"{medium.path} is not on a block device (memory, overlay or network)",
            f"give {medium.name} a path on the medium itself in rig.toml",
        )
    elif medium.stated and medium.stated_number != medium.path_number:
        faults.add(
            f"{medium.path} is on {medium.path_device}, not on {medium.stated}",
            f"mount {medium.stated} there, or correct path or device of {medium.name} in rig.toml",
        )
    elif begins and not medium.path_device.startswith(begins):
        faults.add(
            f"{medium.path} is on {medium.path_device}, which is no {medium.name}",
            f"mount the {medium.name} there, or correct the path in rig.toml",
        )
    return faults


def _own_sensor(taken: WrittenMedium, faults: Defects) -> CheckedFigure:
    """Judges whether the medium's sensor responds to the medium only."""
    rest_w, busy_w, writing_w = (_mean_w(taken, name) for name in ("rest", "processors", "written"))
    moved_w, with_processors_w = writing_w - rest_w, busy_w - rest_w
    share = abs(with_processors_w) / max(moved_w, 1e-3)
    if share > SENSOR_SHARE_MAX or moved_w <= 0.02:
        faults.add(
            f"the medium's sensor changes by {1e3 * moved_w:.0f} mW with the medium and by "
            f"{1e3 * with_processors_w:.0f} mW with the processors",
            "see that it is in the medium's own VBUS, that nothing else is connected after it, and that sensor= in "
            "rig.toml is its place in sensors=",
        )
    return CheckedFigure(share, "", f"at most {100 * SENSOR_SHARE_MAX:g} % of its change with the medium")


def _mean_w(taken: WrittenMedium, name: str) -> float:
    """Mean power of the medium's own sensor during one part of the recording [W]; 0 without a sample."""
    trace, placed = taken.recorded.other_sensors[taken.sensor], by_exchanges(taken.recorded)
    stamps = taken.recorded.system[name]["board_ns"].to_numpy()
    start_ns, end_ns = placed.to_target(int(stamps[0])), placed.to_target(int(stamps[-1]))
    inside = (trace.meter_ns > start_ns) & (trace.meter_ns < end_ns) & trace.good
    return float(trace.power_w[inside].mean()) if inside.any() else 0.0
