"""The command lines of `measure.py command` and `measure.py again`, and cells of studies. Standard library alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from opjoule.cli.argument_types import directory, seed
from opjoule.cli.command import Command
from opjoule.cli.measure.options import (
    SIMULATED_SEED_HELP,
    WHAT,
    MeasuringOptions,
    PlanningOptions,
    YcsbOptions,
    needs_of_measurement,
)
from opjoule.cli.needs import Needs, board_architecture
from opjoule.cli.options import Options, option, positional, positionals, repeated
from opjoule.studies.definition import Part

_PROGRAM_EPILOG: Final = """\
examples:
  host/measure.py command --device rpi4 -- python3 -c 'sum(range(10**8))'
      any program of the board, as a whole
  host/measure.py command --device rpi4 --file job.py --file opjoule_marks.py -- python3 {files}/job.py --data {storage}
      a program of yours, copied there, which marks its phases and operations (docs/how-to/measure-any-command.md)
  host/measure.py command --device rpi4 --simulate -- sh -c 'dd if=/dev/zero of={storage}/f bs=1M count=64'
      the same on a simulated board

In COMMAND, {files} is the folder of the copied files, {storage} a new folder on the chosen medium, both on the board.
"""


@dataclass(frozen=True, kw_only=True)
class ProgramOptions(PlanningOptions):
    """Any program of the board."""

    STUDY: ClassVar[str] = "command"
    GROUP: ClassVar[str] = WHAT

    file: tuple[Path, ...] = repeated(
        directory, "FILE", "copied to the board before anything is measured; {files}/NAME there"
    )
    before: str | None = option(
        str, "SHELL", "a shell command before each repeat's idle; its energy is not counted"
    )
    seed: int | None = option(seed, "N", SIMULATED_SEED_HELP)
    command: tuple[str, ...] = positionals(str, "COMMAND", "behind --, with its arguments")


PROGRAM: Final = Command(
    "command",
    ProgramOptions,
    "opjoule.cli.measure.command:run_measure",
    "Measures what any program costs in joules on a single-board computer: as a whole, in each phase that it marks, "
    "and per operation that it marks.",
    _PROGRAM_EPILOG,
    "measure.py command --device NAME [options] -- COMMAND [ARGUMENT ...]",
    needs=needs_of_measurement,
)


@dataclass(frozen=True, kw_only=True)
class AgainOptions(MeasuringOptions):
    """A plan that was carried out, or written down, before."""

    plan: Path = positional(directory, "RECORD", "a run record, or a file that holds a plan")


def _needs_of_plan(options: AgainOptions) -> Needs:
    """By the plan's device and generator; it is read in full later, and mistakes in it are reported then."""
    path = options.plan / "run.json" if options.plan.is_dir() else options.plan
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        plan = contents.get("plan", contents)
        device, simulated = str(plan["device"]), bool(plan["simulated"])
        ycsb, database = plan["study"].get("generator") == "ycsb", plan["study"].get("database")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Needs(loader=True)
    if options.dry_run:
        return Needs(loader=True, ycsb=ycsb)
    virtual = device == "virtual"
    board = board_architecture(device, options.rig, simulated=simulated, database=database)
    return Needs(loader=True, simulate=simulated or virtual, ycsb=ycsb, virtual=virtual, board=board)


AGAIN: Final = Command(
    "again",
    AgainOptions,
    "opjoule.cli.measure.command:run_measure",
    "Repeats a measurement from its record's plan, here or on another rig: the same study, board, medium, repeats and "
    "idle. Records with the same plan_sha256 had the same plan.",
    "examples:\n  host/measure.py again runs/20261122-101500-leveldb-rpi4-sd\n"
    "  host/measure.py --db leveldb --device rpi4 --dry-run --json > plan.json; host/measure.py again plan.json",
    needs=_needs_of_plan,
)


@dataclass(frozen=True, kw_only=True)
class StudyCell(Options):
    """A cell of a study."""

    folder: str
    """The study's name, or its folder."""
    cell: Mapping[str, str]
    """Axis -> value."""
    scale: float
    figures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The study's figures that show the cell -> the axes that each is about."""


@dataclass(frozen=True, kw_only=True)
class StudyWorkloadOptions(YcsbOptions, StudyCell):
    """A cell of a study that is a workload of the loader."""


@dataclass(frozen=True, kw_only=True)
class JobOptions(PlanningOptions, StudyCell):
    """A cell of a study that is a job on the board."""

    STUDY: ClassVar[str] = "suite"

    parts: tuple[Part, ...]
    dataset: Path | None = field(default=None, metadata={"type": Path})
    connections: Path | None = field(default=None, metadata={"type": Path})
