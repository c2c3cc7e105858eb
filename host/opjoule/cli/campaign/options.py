"""The command line of `host/campaign.py FILE.toml`, and a campaign of any kind, planned. Standard library alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opjoule.cli.argument_types import directory
from opjoule.cli.campaign.cells import needs_of_cells
from opjoule.cli.campaign.file import CampaignFile
from opjoule.cli.campaign.fleet_options import FleetOptions, StudyOptions
from opjoule.cli.command import Command
from opjoule.cli.measure.options import YcsbOptions
from opjoule.cli.needs import Needs
from opjoule.cli.options import Options, Parser, flag, option, positional
from opjoule.errors import BadInput

_EPILOG: Final = """\
examples:
  host/campaign.py campaigns/three-engines.toml --dry-run
      how many cells, what is done, how long the rest takes
  host/campaign.py campaigns/three-engines.toml
      measure what is missing; after any interruption the same command continues
  host/compare.py runs/three-engines --by storage
      what can be concluded

several rigs (docs/how-to/fleet.md):
  host/campaign.py scheduler
  host/campaign.py worker tcp://127.0.0.1:8786 --rig rig.toml     on each rig's computer
  host/campaign.py campaigns/three-engines.toml --scheduler tcp://127.0.0.1:8786
"""


@dataclass(frozen=True, kw_only=True)
class FileOptions(Options):
    """The campaign's file, and where its records go."""

    file: Path = positional(directory, "FILE.toml", "the campaign (docs/how-to/run-a-campaign.md)")
    out: Path | None = option(
        directory, "DIR", "folder of its records (default: runs/NAME); a campaign continues in its folder"
    )
    dry_run: bool = flag("print the plan and what is missing, and stop")
    json: bool = flag("print the plan, or the index at the end, as JSON")


@dataclass(frozen=True, kw_only=True)
class CampaignOptions(FleetOptions, FileOptions):
    """A campaign's file, and the rigs that measure it."""


@dataclass(frozen=True)
class PlannedCampaign:
    """A campaign's cells, and how they are measured."""

    file: CampaignFile
    out: Path | None
    dry_run: bool
    json: bool
    fleet: FleetOptions

    @classmethod
    def checked(
        cls, parser: Parser, options: CampaignOptions | StudyOptions, read: Callable[[], CampaignFile]
    ) -> PlannedCampaign:
        """The campaign that `read` gives; ends the program where that, or measuring its cells together, is refused."""
        try:
            file = read()
        except BadInput as error:
            parser.refuse(error)
        options.check_network(parser, options.scheduler or "")
        boards = sorted({cell.options.architecture for cell in file.cells} - {""})
        if len(boards) > 1 and not (options.dry_run or options.scheduler):
            parser.error(
                f"one campaign cannot measure boards of {' and '.join(boards)}: give each a campaign of its own"
            )
        return cls(file, options.out, options.dry_run, options.json, options)


def needs_of_campaign(campaign: PlannedCampaign) -> Needs:
    """Set-up for all cells, measured here or elsewhere."""
    cells = [cell.options for cell in campaign.file.cells]
    if campaign.dry_run or campaign.fleet.scheduler:
        loader = any(isinstance(cell, YcsbOptions) for cell in cells)  # it checks the workload
        return Needs(loader=loader, fleet=not campaign.dry_run)
    return needs_of_cells(cells)


CAMPAIGN: Final = Command(
    "campaign",
    CampaignOptions,
    "opjoule.cli.campaign.command:run_campaign",
    "Measures every combination of a file's axes in randomised blocks, each as a record of its own. Cells that have a "
    "complete record are not measured again.",
    _EPILOG,
    checked=lambda parser, options: PlannedCampaign.checked(
        parser, options, lambda: CampaignFile.read(options.file)
    ),
    needs=needs_of_campaign,
)
