"""Messages between a campaign and its rigs: cells to measure, outcomes, and the equipment of a rig."""

import hashlib
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from opjoule.boards.rig.file import Rig
from opjoule.runs.measuring.plan import Plan

RIG: Final = "rig"
"""Dask resource: every worker has one and every cell needs one, so that a rig measures one cell at a time."""
SIMULATED: Final = "simulated"
"""Equipment of a worker with a simulated rig."""


class Job(Struct, frozen=True):
    """One cell as a rig receives it."""

    id: str
    """Constant identity of a cell in a campaign's folder."""
    campaign: str
    """Path of the campaign's folder."""
    title: str
    kind: str
    options: dict[str, Any]
    """Options from which the measurement is planned."""
    condition: dict[str, str]
    block: int
    seed: int
    """Seed of the campaign; a simulated rig's meter is drawn from it and from the rig's name."""
    plan_sha256: str
    name: str


class Outcome(Struct, frozen=True):
    """Outcome of a cell's measurement; its records are fetched separately."""

    status: int
    """Exit status, as from measure.py."""
    why: str = ""
    """Reason why there is no record; empty if there is one."""
    took_s: float = 0.0


class ParcelFile(Struct, frozen=True):
    """One file of a record that waits at a rig."""

    path: str
    """Path below the record, with slashes."""
    size: int
    sha256: str


class Parcel(Struct, frozen=True):
    """A record that waits at a rig."""

    job: str
    name: str
    sha256: str
    """Hash of run.json, which contains the hashes of all other files, so that it identifies the content."""
    status: str
    files: tuple[ParcelFile, ...]


class Waiting(Struct, frozen=True):
    """Records and jobs of a campaign that still wait at a rig."""

    parcels: tuple[Parcel, ...]
    jobs: tuple[str, ...]
    """Jobs whose folders can be removed once their parcels are fetched."""


class About(Struct, frozen=True):
    """A worker's description of itself."""

    rig: str
    program: str
    """Version and commit of its OpJoule."""
    measuring: str = ""
    """The running job; empty if there is none."""


def campaign_id(folder: Path) -> str:
    """Identity of a campaign's folder, from this computer's name and the path: records are returned only to it."""
    return hashlib.sha256(f"{socket.gethostname()}:{folder.resolve()}".encode()).hexdigest()[:16]


def job_id(campaign: str, *identity: object) -> str:
    """Identity of a cell of a campaign."""
    return hashlib.sha256("\0".join(map(str, (campaign, *identity))).encode()).hexdigest()[:20]


def rig_has(rig: Rig | None) -> frozenset[str]:
    """Names of a rig's boards, media and meter, as `rpi4`, `rpi4/sd`, `meter/serial`; None is a simulated rig."""
    if rig is None:
        return frozenset({SIMULATED})
    media = {f"{board}/{medium}" for board, device in rig.devices.items() for medium in device.media}
    return frozenset({*rig.devices, *media, _meter(rig.meter)})


def cell_needs(plan: Plan, meter: str | None) -> frozenset[str]:
    """Equipment that a cell needs, by the same names.

    Args:
        meter: the cell's own, as --meter takes it; None: the rig's.
    """
    if plan.simulated:
        return frozenset({SIMULATED})
    return frozenset({plan.board.name, *([_meter(meter)] if meter else [])})


def _meter(port: str) -> str:
    return f"meter/{port.partition(':')[0]}"


def resources(names: frozenset[str]) -> Mapping[str, float]:
    """Names of equipment as Dask resources, one each."""
    return dict.fromkeys(sorted({RIG, *names}), 1.0)
