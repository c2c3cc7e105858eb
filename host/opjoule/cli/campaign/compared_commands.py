"""`compare -- COMMAND COMMAND`: the command line as a campaign whose axis is the command."""

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from itertools import product
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.base.settings import MEDIUM
from opjoule.boards.profiles import find_profile
from opjoule.campaign.axes import UntilNarrow, media_of
from opjoule.cli.campaign.file import CampaignFile, PlannedCell, check_size
from opjoule.cli.campaign.options import CommandsOptions, PlannedCampaign, needs_of_campaign
from opjoule.cli.commands import Command
from opjoule.cli.failures import one_line
from opjoule.cli.measure.options import OutputOptions, PlanningOptions, ProgramOptions
from opjoule.cli.options import NAME_MAX
from opjoule.runs.studies.definition import COMMAND

_EXAMPLE: Final = "host/compare.py --device rpi4 -- 'sleep 2' 'sleep 4'"
_EPILOG: Final = """\
examples:
  host/compare.py --device rpi4 --simulate -- 'sleep 2' 'sleep 4'
      two commands on a simulated board
  host/compare.py --device rpi4 --file f -n gz -n xz -- 'gzip <{files}/f >{storage}/f' 'xz <{files}/f >{storage}/f'
      named, on a file that is copied to the board; {storage} is a new folder on the medium
  host/compare.py --device rpi4 --blocks 3 --until 5% -- 'seq 5000000 | sort' 'seq 5000000 | sort -n'
      as many blocks as it takes to know every ratio within 5 %
  host/compare.py --device rpi4 --warmup 1 --storage sd,emmc -- 'sha256sum /usr/bin/*' 'md5sum /usr/bin/*'
      with the page cache filled, on two media
  host/compare.py --device rpi4 --dry-run -- 'sleep 2' 'sleep 4'
      what would be measured, and which differences would be found

After an interruption the same command continues. docs/how-to/measure-any-command.md
"""


def commands_campaign(options: CommandsOptions) -> CampaignFile:
    """The campaign that a command line asks for. Raises: BadInput: the first mistake."""
    _check(options)
    media = media_of(options.storage)
    profile = find_profile(options.device)
    for medium in media:
        profile.with_medium(medium)
    names = command_names(options.commands, options.name)
    cells: list[PlannedCell] = []
    for (line, name), medium in product(zip(options.commands, names, strict=True), media or [""]):
        condition = {COMMAND: name, **({MEDIUM: medium} if len(media) > 1 else {})}
        cells.append(PlannedCell(condition, _cell(options, line, medium or None), len(cells)))
    check_size(len(cells), max(options.blocks, options.blocks_limit if options.until else 0))
    shown = [(name, one_line(line)) for name, line in zip(names, options.commands, strict=True)]
    return CampaignFile(
        name=_folder(options, names),
        repeats=options.blocks,
        seed=options.seed,
        retries=1,
        cells=tuple(cells),
        about=tuple(f"  command    {name if name == line else f'{name}: {line}'}" for name, line in shown),
        until=UntilNarrow(options.until, max(options.blocks, options.blocks_limit)) if options.until else None,
    )


def _check(options: CommandsOptions) -> None:
    """Raises: BadInput: not at least two commands, each in one word, or not a name for each."""
    commands = options.commands
    if len(commands) < 2:
        given = "no command is given" if not commands else f"one command alone is given, {one_line(commands[0])!r}"
        raise BadInput(f"{given}: give two or more behind --, each in quotes, for example {_EXAMPLE}")
    for command in commands:
        if not command.strip() or command.startswith("-"):
            raise BadInput(f"{command!r} is not a command: write each command in quotes, for example {_EXAMPLE}")
    if repeated := [command for command, count in Counter(commands).items() if count > 1]:
        raise BadInput(f"the command {one_line(repeated[0])!r} is given twice: leave one out")
    if options.name and len(options.name) != len(commands):
        raise BadInput(f"--name is given for {len(options.name)} of {len(commands)} commands: give it once for each")
    if len(set(options.name)) < len(options.name):
        raise BadInput("two commands have the same --name: give each its own")


def command_names(commands: Sequence[str], given: Sequence[str]) -> list[str]:
    """Names of the commands: as given, or the commands themselves; a long one is cut, equal ones are numbered."""
    if given:
        return list(given)
    longest = NAME_MAX - len(" (99)")
    lines = [one_line(command) for command in commands]
    cut = [line if len(line) <= longest else f"{line[: longest - 3]}..." for line in lines]
    repeated = {name for name, count in Counter(cut).items() if count > 1}
    return [f"{name} ({at})" if name in repeated else name for at, name in enumerate(cut, 1)]


def _cell(options: CommandsOptions, line: str, medium: str | None) -> ProgramOptions:
    """Options of the measurement of one command on one medium."""
    printed = {option.name for option in fields(OutputOptions)}
    shared = {
        option.name: getattr(options, option.name)
        for option in fields(PlanningOptions)
        if hasattr(options, option.name) and option.name not in printed
    }
    measured = {**shared, MEDIUM: medium, "repeats": 1, "json": options.json}
    return ProgramOptions(
        **measured,
        file=options.file,
        before=_before(options, line) or None,
        command=("sh", "-c", line),
    )


def _before(options: CommandsOptions, line: str) -> str:
    """What runs before idle: the warm-ups, each after --before, then --before once more."""
    first = [options.before] if options.before else []
    runs = [f"sh -c {shlex.quote(part)}" for part in [*[*first, line] * options.warmup, *first]]
    return " && ".join(runs)


def _folder(options: CommandsOptions, names: Sequence[str]) -> str:
    """Name of the records' folder under runs/: the same command line continues in it."""
    what = [options.commands, options.before, options.warmup, options.storage, list(map(str, options.file))]
    digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:8]
    parts = ["compare", *(_slug(name) for name in names[:2]), options.device, digest]
    return "-".join([*filter(None, parts), *(["simulated"] if options.simulate else [])])


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name)[:20].strip("-.")


COMPARE_COMMANDS: Final = Command(
    "compare",
    CommandsOptions,
    "opjoule.cli.campaign.command:run_campaign",
    "Measures two or more shell commands on a board, in random order within blocks, and says by what factor they "
    "differ in energy and time, with interval and p. Each run is a record, as in a campaign.",
    _EPILOG,
    "compare.py --device NAME [options] -- 'COMMAND A' 'COMMAND B' ...",
    checked=lambda parser, options: PlannedCampaign.checked(parser, options, lambda: commands_campaign(options)),
    needs=needs_of_campaign,
)
