"""The command lines of `measure.py campaign`: a campaign, and the scheduler and workers that give it several rigs.

Parsed with the standard library alone, before set-up, too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from opjoule.cli.argument_types import Parser, directory
from opjoule.cli.board_build import board_architecture
from opjoule.cli.campaign.file import CampaignFile, cell_options
from opjoule.cli.campaign.fleet_arguments import (
    add_scheduler,
    cell_parser,
    check_network,
    scheduler_parser,
    worker_parser,
)
from opjoule.cli.campaign.study_arguments import is_study, study_cell
from opjoule.cli.failures import one_line
from opjoule.errors import BadInput
from opjoule.studies.folder import find_study

EXAMPLES: Final = """\
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


def campaign_options(argv: list[str]) -> tuple[argparse.Namespace, dict[str, Any]]:
    """`[scheduler|worker|cell] ...`, or `FILE.toml ...`: the options, and what is set up for them (arguments.Asked)."""
    if argv and argv[0] in ("scheduler", "worker", "cell"):
        return _of_fleet(argv[0], argv[1:])
    parser = campaign_parser()
    options = parser.parse_args(argv)
    options.action = ""
    check_network(parser, options, options.scheduler or "")
    try:
        options.campaign = CampaignFile.read(options.file)
    except BadInput as error:
        parser.exit(BadInput.exit_code, f"campaign.py: {one_line(str(error))}\n")
    return options, for_campaign(parser, options)


def for_campaign(parser: Parser, options: argparse.Namespace) -> dict[str, Any]:
    """Set-up for all cells of a campaign, measured here or elsewhere."""
    cells = [each.options for each in options.campaign.cells]
    if options.dry_run or options.scheduler:
        needed = any(each.study == "ycsb" for each in cells)  # the loader checks the workload
        return {"loader": needed, "fleet": bool(options.scheduler) and not options.dry_run}
    boards = sorted({board_architecture(each) for each in cells} - {""})
    if len(boards) > 1:
        parser.error(
            f"one campaign cannot measure boards of {' and '.join(boards)}: give each a campaign of its own"
        )
    return _for_cells(cells)


def _of_fleet(action: str, argv: list[str]) -> tuple[argparse.Namespace, dict[str, Any]]:
    """What several rigs need beside the campaign."""
    parser = {"scheduler": scheduler_parser, "worker": worker_parser, "cell": cell_parser}[action]()
    options = parser.parse_args(argv)
    options.action = action
    if action != "cell":
        check_network(parser, options, options.host if action == "scheduler" else options.scheduler)
        work = action == "worker"  # set-up is done before its cells ask for it
        return options, {"loader": work, "simulate": work and options.simulate, "fleet": True}
    try:
        job = json.loads((options.place / "job.json").read_text(encoding="utf-8"))
        words, condition = job["words"], job["condition"]
        options.cell = study_cell(words, condition) if is_study(words) else cell_options(words, condition)
    except (OSError, ValueError, KeyError, BadInput) as error:
        parser.exit(BadInput.exit_code, f"campaign.py: {options.place}: {one_line(str(error))}\n")
    options.cell.rig = options.rig or options.cell.rig
    return options, {**_for_cells([options.cell]), "fleet": True}


def _for_cells(cells: Sequence[argparse.Namespace]) -> dict[str, Any]:
    """Set-up for every cell that is measured here."""
    virtual = any(each.device == "virtual" for each in cells)
    return {
        "simulate": virtual or any(each.simulate for each in cells),
        "ycsb": any(each.generator == "ycsb" for each in cells),
        "virtual": virtual,
        "packages": tuple(dict.fromkeys(name for each in cells for name in _packages(each))),
        "board": next((found for each in cells if (found := board_architecture(each))), ""),
    }


def _packages(options: argparse.Namespace) -> Iterator[str]:
    """Debian packages that a cell needs of this computer as its simulated board."""
    if options.study == "suite" and options.simulate:
        study = find_study(options.folder)
        for value in options.cell.values():
            yield from study.packages.get(value, ())


def campaign_parser() -> Parser:
    """The parser of `measure.py campaign`."""
    parser = Parser(
        program="campaign.py",
        description="Measures every combination of a file's axes in randomised blocks, each as a record "
        "of its own. Cells that have a complete record are not measured again.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "file", type=directory, metavar="FILE.toml", help="the campaign (docs/how-to/run-a-campaign.md)"
    )
    parser.add_argument(
        "--out",
        type=directory,
        metavar="DIR",
        help="folder of its records (default: runs/NAME); a campaign continues in its folder",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and what is missing, and stop")
    parser.add_argument(
        "--json", action="store_true", help="print the plan, or the index at the end, as JSON"
    )
    add_scheduler(parser)
    return parser
