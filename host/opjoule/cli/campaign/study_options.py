"""The options of `measure.py --study NAME`. Standard library alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opjoule.cli.argument_types import directory, seed, share, time_span
from opjoule.cli.campaign.fleet_options import FleetOptions
from opjoule.cli.measure.options import (
    STORAGE_HELP,
    WHAT,
    HowOptions,
    OutputOptions,
    RigOptions,
    SimulateOptions,
)
from opjoule.cli.options import Options, option, repeated, required


@dataclass(frozen=True, kw_only=True)
class StudyChoice(Options):
    """Which study, where, and how much of it."""

    GROUP: ClassVar[str] = WHAT

    study: str = required(str, "NAME", "its name (measure.py studies), or its folder")
    device: str = required(
        str, "NAME", "board: rpi3, rpi4, odroid-c2, ...; several with commas if the study compares boards"
    )
    storage: str | None = option(str, "MEDIUM", STORAGE_HELP)
    scale: float = option(
        share, "X", "multiplies the study's counts, above 0 and at most 1 (default: 1)", 1.0
    )
    within: float | None = option(
        time_span,
        "TIME",
        "chooses the scale so that the study takes no longer than this, judging by records of it at another scale: "
        "90min, 2h",
    )
    only: tuple[str, ...] = repeated(
        str,
        "AXIS=VALUE[,VALUE]",
        "only these values of an axis, a count or the study's figures (figure=7); may be given several times",
    )
    dataset: Path | None = option(directory, "FILE", "your data instead of generated data")
    connections: Path | None = option(
        directory,
        "FILE",
        "databases of yours, one per line: NAME = ODBC connection string (measure.py studies lists the names)",
    )
    seed: int = option(seed, "N", "seed of the data, the order and a simulated rig (default: 1)", 1)


@dataclass(frozen=True, kw_only=True)
class StudyOptions(FleetOptions, OutputOptions, HowOptions, RigOptions, SimulateOptions, StudyChoice):
    """A study, on one rig or several."""
