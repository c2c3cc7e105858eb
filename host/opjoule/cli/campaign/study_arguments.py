"""`measure.py --study NAME`: the command line as a campaign over the study's cells. Standard library alone."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from opjoule.campaign.past_times import TimeNeeded, past_times, time_needed
from opjoule.cli.argument_types import Parser, directory, seed, share, time_span
from opjoule.cli.campaign.file import CampaignFile, PlannedCell, check_size
from opjoule.cli.campaign.fleet_arguments import add_scheduler
from opjoule.cli.campaign.workload_cells import workload_cells
from opjoule.cli.failures import one_line
from opjoule.cli.measure.arguments import SETTLE_LIMIT_S, add_how, add_rig, add_storage
from opjoule.errors import BadInput
from opjoule.studies.connections import given_names, is_reached, left_out
from opjoule.studies.definition import DEVICE, FIGURE, STORAGE, SYSTEM, StudyFolder, numbers
from opjoule.studies.folder import find_study

RUNS: Final = Path(__file__).resolve().parents[4] / "runs"
"""Where records go."""
DISTURB: Final = "disturb"
"""An axis that is an option of every measurement, too; its value `none` is for without."""
SEED: Final = 1
_OF_SEVERAL_RIGS: Final = ("scheduler", "wait", "tls_ca_file", "tls_cert", "tls_key")
_EPILOG: Final = """\
examples:
  host/measure.py --study s2 --device rpi4 --simulate --scale 0.01 --only size=0-1KiB
      a hundredth of study S2's counts, for records below 1 KiB, on a simulated board
  host/measure.py --study s2 --device rpi4 --only system=sqlite,leveldb --dry-run
      what would be measured, and what is done
  host/measure.py --study s2 --device rpi4
      all of it; after any interruption the same command continues
  host/runs.py figures runs/s2-rpi4 --out figures
      the study's tables and plots, from its records
  host/measure.py --study s1 --device rpi4 --only figure=7 --scale 0.025
      what figure 7 of study S1 shows, a fortieth of its size

docs/how-to/repeat-a-study.md
"""


def is_study(argv: Sequence[str]) -> bool:
    """Does a command line without a command ask for a study?"""
    return (
        argv[:1] != [] and argv[0].startswith("-") and any(each.split("=")[0] == "--study" for each in argv)
    )


def study_parser() -> Parser:
    """The parser of `measure.py --study NAME`."""
    parser = Parser(
        usage="measure.py --study NAME --device NAME [options]",
        description="Repeats a study. It measures each system on each data set, one record each: the "
        "energy of every phase beside the study's own measures. At the end it names the "
        "best system of each cell.",
        epilog=_EPILOG,
    )
    parser.set_defaults(db=None, generator="loader", seconds=None, operations=None, no_harness=True, block=1)
    what = parser.add_argument_group("what is measured")
    what.add_argument(
        "--study", required=True, metavar="NAME", help="its name (measure.py studies), or its folder"
    )
    what.add_argument(
        "--device",
        required=True,
        metavar="NAME",
        help="board: rpi3, rpi4, odroid-c2, ...; several with commas if the study compares boards",
    )
    add_storage(what)
    what.add_argument(
        "--scale",
        type=share,
        default=1.0,
        metavar="X",
        help="multiplies the study's counts, above 0 and at most 1 (default: 1)",
    )
    what.add_argument(
        "--within",
        type=time_span,
        metavar="TIME",
        help="chooses the scale so that the study takes no longer than this, judging by records of it at "
        "another scale: 90min, 2h",
    )
    what.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="AXIS=VALUE[,VALUE]",
        help="only these values of an axis, a count or the study's figures (figure=7); may be given several times",
    )
    what.add_argument("--dataset", type=directory, metavar="FILE", help="your data instead of generated data")
    what.add_argument(
        "--connections",
        type=directory,
        metavar="FILE",
        help="databases of yours, one per line: NAME = ODBC connection string (measure.py studies lists "
        "the names)",
    )
    what.add_argument(
        "--seed",
        type=seed,
        default=SEED,
        metavar="N",
        help="seed of the data, the order and a simulated rig (default: 1)",
    )
    add_rig(parser)
    add_how(parser)
    add_scheduler(parser.add_argument_group("several rigs"))
    parser.set_defaults(repeats=None, settle_limit=None)
    return parser


def study_campaign(options: argparse.Namespace, command_line: Sequence[str]) -> CampaignFile:
    """The cells that a command line asks for, each with its options.

    Args:
        options: what study_parser() made of the command line.
    Raises: BadInput: the first thing in it that is wrong.
    """
    definition = find_study(options.study)
    only = _only(options.only)
    _check(definition, options)
    if options.within:
        options.scale = _scale_within(options, command_line)
    if definition.workload:
        media = _listed("--storage", options.storage)
        placed = definition.on(_listed("--device", options.device), media)
        cells = workload_cells(placed, options, only, command_line)
    else:
        placed, cells = definition, _job_cells(definition, options, only, command_line)
    check_size(len(cells), options.repeats or definition.repeats)
    return CampaignFile(
        name=_folder(definition, options),
        repeats=options.repeats or definition.repeats,
        seed=options.seed,
        retries=1,
        cells=tuple(cells),
        about=(*_about(placed, cells, options.scale, only), *_left_out(placed, options, only)),
        shared=True,
    )


def _scale_within(options: argparse.Namespace, command_line: Sequence[str]) -> float:
    """The scale at which all of it takes no longer than --within. Raises: BadInput: nobody knows, or none does."""
    whole = argparse.Namespace(**(vars(options) | {"within": None, "scale": 1.0}))
    needed = needed_time(study_campaign(whole, command_line), options.out)
    if needed is None:
        raise BadInput(
            f"--within: how long study {options.study} takes on {options.device} is not known yet: "
            "measure it at a small scale first, for example --scale 0.001"
        )
    scale = needed.scale_within(options.within, 1.0)
    if scale <= 0:
        raise BadInput(
            f"--within: idle and settling of {needed.cells} measurements alone take "
            f"{needed.fixed_s / 60:.0f} min: take fewer cells (--only) or blocks (--repeats)"
        )
    return scale


def needed_time(file: CampaignFile, out: Path | None) -> TimeNeeded | None:
    """How long all blocks of a study's cells take, by records of it; None where none is known.

    Args:
        out: its folder, where that is not one of runs/.
    """
    cells = [vars(each.options) for each in file.cells]
    places = [RUNS, *([out.parent, out] if out else [])]
    by_rig = {(str(each["device"]), str(each["storage"])): each for each in cells}
    past = [found for each in by_rig.values() for place in places for found in past_times(place, each)]
    return time_needed(cells * file.repeats, past)


def study_cell(words: Sequence[str], condition: Mapping[str, str]) -> argparse.Namespace:
    """The options of the one cell of a study's command line that has this condition.

    Raises: BadInput: there is none.
    """
    options = study_parser().parse_args(words)
    for cell in study_campaign(options, words).cells:
        if cell.condition == condition:
            return cell.options
    shown = ", ".join(f"{name} {value}" for name, value in condition.items())
    raise BadInput(
        f"study {options.study} has no cell {shown} here: bring all computers to the same version of it"
    )


def _check(definition: StudyFolder, options: argparse.Namespace) -> None:
    """Raises: BadInput: options that do not go with the study, or with each other."""
    if options.until_u:
        raise BadInput("--until-u is not for a study: choose the number of its blocks with --repeats")
    for option in (STORAGE, DEVICE):
        several = "," in (getattr(options, option) or "")
        if several and (not definition.workload or option not in definition.axes):
            raise BadInput(
                f"--{option} {getattr(options, option)}: study {definition.name} takes one at a time"
            )
    if options.dataset and not any("{dataset}" in part for part in definition.command):
        raise BadInput(
            f"--dataset {options.dataset}: study {definition.name} only takes the data that it generates"
        )
    if options.dataset and not options.dataset.is_file():
        raise BadInput(f"--dataset {options.dataset}: no such file")
    if options.disturb and DISTURB in definition.axes:
        raise BadInput(
            f"--disturb {options.disturb}: the study has both; say --only {DISTURB}={options.disturb}"
        )


def _listed(option: str, text: str | None) -> list[str]:
    """Several values with commas. Raises: BadInput: one twice, or none between two commas."""
    values = [each.strip() for each in text.split(",")] if text else []
    if len(set(values)) < len(values) or "" in values:
        raise BadInput(f"{option} {text}: name each one once, as in {option} a,b")
    return values


def _job_cells(
    definition: StudyFolder,
    options: argparse.Namespace,
    only: Mapping[str, Sequence[str]],
    command_line: Sequence[str],
) -> list[PlannedCell]:
    """The cells of a study that is a job."""
    cells, given = [], given_names(options.connections, definition)
    settle_limit_s = SETTLE_LIMIT_S if options.settle_limit is None else options.settle_limit
    for cell in definition.cells(only):
        if not is_reached(definition, cell, given):
            continue
        own = {name: each for name, each in vars(options).items() if name not in _OF_SEVERAL_RIGS}
        own |= {"study": "suite", "repeats": 1, "folder": definition.name}
        own |= {"cell": cell, "parts": definition.parts(cell, options.scale, only)}
        own |= {"settle_limit": settle_limit_s}
        if DISTURB in cell:
            own[DISTURB] = None if cell[DISTURB] == "none" else cell[DISTURB]
        inside = (*definition.within, *definition.counts)
        condition = {**cell, **{name: ",".join(only[name]) for name in inside if name in only}}
        condition = condition or {"study": definition.name}
        words = tuple(command_line)
        cells.append(PlannedCell(condition, argparse.Namespace(**own), words, definition.rank(cell)))
    if not cells:
        lacking = "; ".join(left_out(definition, only, given))
        raise BadInput(f"no system of the study is available: give --connections FILE with {lacking}")
    return cells


def _left_out(
    definition: StudyFolder, options: argparse.Namespace, only: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Databases whose cells are left out, with what would bring them in."""
    for each in left_out(definition, only, given_names(options.connections, definition)):
        yield f"  left out   {each}: give it by --connections FILE"


def _folder(definition: StudyFolder, options: argparse.Namespace) -> str:
    """Name of the records' folder under runs/: the same command goes on in it, and so does one for another board."""
    name = "".join(
        letter if letter.isalnum() or letter in "._-" else "-" for letter in definition.folder.name
    )
    device = None if DEVICE in definition.axes else options.device
    media = "-".join(_listed("--storage", options.storage))
    parts = [name, device, media, f"scale-{options.scale:g}" if options.scale < 1 else None]
    return "-".join([*filter(None, parts), *(["simulated"] if options.simulate else [])])


def _only(settings: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for setting in settings:
        name, equals, values = setting.partition("=")
        if not equals or not all(each.strip() for each in values.split(",")):
            raise BadInput(
                f"--only {setting!r} is not AXIS=VALUE: for example --only {SYSTEM}=sqlite,leveldb"
            )
        found.setdefault(name.strip(), []).extend(each.strip() for each in values.split(","))
    return found


def _about(
    definition: StudyFolder, cells: Sequence[PlannedCell], scale: float, only: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """The study in words, for the plan."""
    parts = [
        {**each.options.cell, **part}
        for each in cells
        for part in definition.parts(each.options.cell, scale, only)
    ]
    axes = {name: dict.fromkeys(str(part[name]) for part in parts) for name in definition.axes}
    lines = [f"  study      {definition.title} (scale {scale:g})"]
    lines += [f"  {one_line(name):<10} {', '.join(values)}" for name, values in axes.items()]
    for name in definition.counts:
        shown = " or ".join(
            dict.fromkeys(numbers(each) for part in parts if not isinstance(each := part[name], str))
        )
        lines.append(f"  {one_line(name):<10} {shown}")
    lines += [f"  phase      {name}: {words}" for name, words in definition.phases.items()]
    return (*lines, *_about_figures(definition, cells, only.get(FIGURE, list(definition.figures))))


def _about_figures(
    definition: StudyFolder, cells: Sequence[PlannedCell], asked: Sequence[str]
) -> Iterator[str]:
    """What each figure that is asked for would show."""
    for name in asked:
        figure = definition.figures[name]
        shown = [each.options.cell for each in cells if name in each.options.figures]
        differ = [axis for axis in figure.by if len({cell[axis] for cell in shown}) > 1]
        many = f"{len(shown)} of the cells, by {' and '.join(differ)}"
        few = (
            f"nothing to compare: one {' and one '.join(figure.by)}"
            if shown
            else "none on these boards and media (--storage)"
        )
        yield f"  {FIGURE} {name:<3} {figure.title}: {many if differ else few}"


def studies_parser() -> Parser:
    """The parser of `measure.py studies`."""
    parser = Parser(
        "studies",
        description="Lists the studies that --study repeats: what each is, its systems, and which of them is missing "
        "on this computer and how to get it.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    return parser


def databases_parser() -> Parser:
    """The parser of `measure.py databases`."""
    parser = Parser(
        "databases",
        description="Lists the databases: built into the loader, found on this computer, or missing and how to get it.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    return parser
