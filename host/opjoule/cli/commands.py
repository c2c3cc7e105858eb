"""Every command of host/measure.py, and the parsing of its command line. Standard library only.

The line is parsed before set-up. Thus --help and a mistyped option need no set-up, and the options say what set-up has
to do. The environment's Python receives the parsed options (command.py), never the line itself.
"""

import sys
from typing import Final, NoReturn

from opjoule.base.errors import suggestion
from opjoule.base.scripts import script_name
from opjoule.cli import short_commands as short
from opjoule.cli.calibrate.options import CALIBRATE, CHECK, SHOW
from opjoule.cli.campaign.options import CAMPAIGN, CELL, SCHEDULER, WORKER
from opjoule.cli.campaign.study_cells import STUDY
from opjoule.cli.command import ParsedCommand
from opjoule.cli.commission.options import COMMISSION
from opjoule.cli.compare.commands import COMPARE_COMMANDS, measures_commands
from opjoule.cli.compare.options import COMPARE
from opjoule.cli.failures import one_line, reporting_failures
from opjoule.cli.measure.options import AGAIN, MEASURE, PROGRAM
from opjoule.cli.runs.options import ACTIONS, RUNS
from opjoule.cli.twin.options import TWIN

FIRST_COMMAND: Final = "host/measure.py --db leveldb --device rpi4 --simulate"
COMMANDS: Final = {
    command.name: command
    for command in (
        *(short.INIT, short.RECORD, short.IMPORT, short.DOCTOR, COMMISSION, short.REPORT, short.VERIFY),
        *(short.RESTORE, short.SUDOERS, short.VIRTUAL_BOARD),
        *(PROGRAM, AGAIN, TWIN, CALIBRATE, CHECK, SHOW, RUNS, *ACTIONS, short.VIEW, COMPARE),
        *(CAMPAIGN, SCHEDULER, WORKER, CELL, short.STUDIES, short.DATABASES),
    )
}


def parse(argv: list[str]) -> ParsedCommand:
    """Parses one command line; on a mistake argparse exits with status 2 and one line."""
    if argv == ["help"]:
        argv = ["--help"]
    if argv[:1] == [COMPARE.name] and measures_commands(argv[1:]):
        return COMPARE_COMMANDS.parse(argv[1:])
    for count in (2, 1):
        if command := COMMANDS.get(" ".join(argv[:count])):
            return command.parse(argv[count:])
    if not argv:
        MEASURE.parser().error(f"no command given; to begin: {FIRST_COMMAND}")
    if not argv[0].startswith("-"):
        _refuse(argv[0])
    given = [word.split("=")[0] for word in argv]
    if "--study" in given and "--db" in given:
        STUDY.parser().error("--study names its databases itself: leave out --db, and give --only system=NAME")
    return (STUDY if "--study" in given else MEASURE).parse(argv)


def main(argv: list[str]) -> int:
    """Runs one command line. A failure prints one line on stderr and gives its exit status."""
    return reporting_failures(script_name(argv), parse(argv).loaded())


def _refuse(word: str) -> NoReturn:
    known = [name for name in COMMANDS if " " not in name]
    print(
        f"measure.py: unknown command '{one_line(word)}': {suggestion(word, known)}there are {', '.join(known)}; "
        "without a command it measures: give --db NAME --device NAME",
        file=sys.stderr,
    )
    sys.exit(2)
