"""`opjoule`, the program of an installed package: the commands that analyse records, on any system.

They need neither Debian's packages nor a clone. All other commands measure, or prepare a measurement; they run from a
clone.
"""

import sys
from typing import Final

from opjoule import __version__
from opjoule.cli import start
from opjoule.cli.commands import COMMANDS
from opjoule.cli.compare.commands import measures_commands
from opjoule.cli.compare.options import COMPARE
from opjoule.cli.failures import one_line
from opjoule.cli.shell_files import completion, manual
from opjoule.errors import BadInput, suggestion
from opjoule.scripts import INSTALLED

ANALYSIS: Final = {
    "runs": "list, show, note, verify, export, draw, bundle and delete records",
    "compare": "compare runs and say what can be concluded",
    "report": "print the summary of a record and write its report.html",
    "verify": "compare a record's files with the checksums that its run wrote",
    "view": "show runs in a browser, two on one time axis",
    "import": "make a record from a trace that another program recorded",
}
"""Commands of the installed package, and what each is for."""
CLONE: Final = "from a clone, on Debian 12, Debian 13 or Raspberry Pi OS"
_ABOUT: Final = "analyses what OpJoule has measured: joules per database operation on single-board computers"
_HELP: Final = f"""\
usage: {INSTALLED} COMMAND ...

{_ABOUT[:1].upper() + _ABOUT[1:]}.

{{commands}}
(each has its own --help)
  completion  print the completion for bash: write eval "$(opjoule completion)" into ~/.bashrc
  man         print the manual page: opjoule man | man -l -

In Python: opjoule.open_run("RECORD"). Measuring, also with a simulated rig, runs {CLONE}.
"""


def main() -> int:
    """Runs one command line; returns the exit status."""
    argv = sys.argv[1:]
    if argv in ([], ["help"], ["-h"], ["--help"]):
        print(
            _HELP.format(commands="\n".join(f"  {name:<9} {about}" for name, about in ANALYSIS.items())),
            end="",
        )
        return 0
    if argv == ["completion"]:
        print(completion(ANALYSIS), end="")
        return 0
    if argv == ["man"]:
        print(manual(ANALYSIS, _ABOUT), end="")
        return 0
    if argv == ["--version"]:
        print(__version__)
        return 0
    if argv[0] in ANALYSIS and not _measures(argv):
        return start.main(argv)
    print(f"{INSTALLED}: {_refusal(argv)}", file=sys.stderr)
    return BadInput.exit_code


def _measures(argv: list[str]) -> bool:
    """Whether a command of the analysis is to measure commands first."""
    return argv[0] == COMPARE.name and measures_commands(argv[1:])


def _refusal(argv: list[str]) -> str:
    """Why the installed package does not run a command line."""
    word = one_line(argv[0])
    if word.startswith("--"):
        return f"without a command OpJoule measures, which runs {CLONE}: host/measure.py {word} ..."
    if _measures(argv):
        return f"comparing commands measures them, which runs {CLONE}: host/compare.py --device NAME -- ..."
    if word == "measure":
        return f"measuring runs {CLONE}: host/measure.py"
    if word in {name.split(" ")[0] for name in COMMANDS}:
        return f"{word} runs {CLONE}: host/measure.py {word}"
    return f"unknown command '{word}': {suggestion(word, ANALYSIS)}there are {', '.join(ANALYSIS)}"
