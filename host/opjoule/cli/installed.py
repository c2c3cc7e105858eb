"""`opjoule`, the program of an installed package, with every command.

The commands that analyse records run from the package, on any system. All others measure, or prepare a measurement:
they need Debian's packages and the sources, and are carried out by a clone. That is the one that OPJOULE_HOME names,
else the one in which the user is.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from opjoule import __version__
from opjoule.base.errors import BadInput, suggestion
from opjoule.base.scripts import INSTALLED, IS_CLONE, MEASURE, ROOT
from opjoule.cli import start
from opjoule.cli.commands import Command, commands_of, measure_command, measures_commands
from opjoule.cli.failures import one_line

_MEASURE: Final = "measure"
"""Name here of the main command, which has none in a clone."""
_RUNS: Final = "runs"
"""The command whose actions are commands of their own."""
_COMPLETION: Final = """\
# Completion of {program}, for bash.
_{program}() {{
  local words current="${{COMP_WORDS[COMP_CWORD]}}"
  case "${{COMP_WORDS[*]:1:COMP_CWORD-1}} " in
{cases}
    " ") words="{commands}" ;;
  esac
  # Without a dash it is the name of a file, unless there are words.
  [[ "$words" == -* && "$current" != -* ]] && words=""
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _{program} {program}
"""


def _parsed(names: Iterable[str]) -> list[str]:
    """The commands that have options of their own; those of `runs` are its actions."""
    found = []
    for name in names:
        found += [_MEASURE] if name == _MEASURE else [one for one in commands_of(name) if one != name]
        found += [name] if name in commands_of(name) and name != _RUNS else []
    return found


def completion(commands: Mapping[str, str]) -> str:
    """Script that completes commands, actions and options; `commands` are those of the program, with their purpose."""
    cases = []
    for name in _parsed(commands):
        actions = _actions(name)
        options = [f"--{option.replace('_', '-')}" for option in _command(name).parser().option_names if option[1:]]
        if actions:
            cases.append(f'    "{name} ") words="{" ".join([*actions, *options])}" ;;')
        cases.append(f'    "{name} "*) words="{" ".join(options)}" ;;')
    cases.append(f'    "{_RUNS} ") words="{" ".join(_actions(_RUNS))}" ;;')
    return _COMPLETION.format(program=INSTALLED, cases="\n".join(cases), commands=" ".join(commands))


def _actions(name: str) -> list[str]:
    """Second words of the commands that begin with this one."""
    return [one.split(" ")[1] for one in commands_of(name) if one != name]


def _command(name: str) -> Command:
    return measure_command([]) if name == _MEASURE else commands_of(name.split(" ", maxsplit=1)[0])[name]


def manual(commands: Mapping[str, str], about: str) -> str:
    """The manual page (man(7)): what the program is for, and the help of each command."""
    lines = [
        f'.TH {INSTALLED.upper()} 1 "" "OpJoule {__version__}"',
        *(".SH NAME", f"{INSTALLED} \\- {_roff(about)}"),
        *(".SH SYNOPSIS", f".B {INSTALLED}", ".I COMMAND ..."),
        ".SH COMMANDS",
        *(line for name, purpose in commands.items() for line in (".TP", f".B {name}", _roff(purpose))),
    ]
    for name in _parsed(commands):
        lines += [f".SH {INSTALLED} {name}", ".nf", _roff(_command(name).parser().format_help()), ".fi"]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Text without characters that steer roff: backslashes, and dots and quotes at the beginning of a line."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


ANALYSIS: Final = {
    "runs": "list, show, note, verify, export, draw, bundle and delete records",
    "compare": "compare runs and say what can be concluded",
    "report": "print the summary of a record and write its report.html",
    "verify": "compare a record's files with the checksums that its run wrote",
    "view": "show runs in a browser, two on one time axis",
    "import": "make a record from a trace that another program recorded",
}
"""Commands of the installed package, and what each is for."""
OF_A_CLONE: Final = {
    "measure": "measure the joules of a database operation: opjoule measure --db leveldb --device rpi4 --simulate",
    "command": "measure any program",
    "campaign": "measure every combination of the axes in a file",
    "again": "repeat a measurement from its record",
    "record": "record a meter's trace without a board",
    "init": "ask for meter, board and media, and write rig.toml",
    "doctor": "check programs, rig.toml, meter and board",
    "commission": "check a rig before its first measurement",
    "calibrate": "calibrate a current sensor against a reference",
    "twin": "fit the simulated board to records",
    "studies": "list the studies that can be repeated",
    "databases": "list the databases",
    "restore": "restore a board after an interrupted measurement",
    "sudoers": "print a script that installs opjoule-root on a board",
    "virtual-board": "make a board under qemu",
    "validate": "run experiments with known joules",
}
"""Commands that a clone carries out, and what each is for."""
PROGRAMS: Final[Mapping[str, str]] = ANALYSIS | OF_A_CLONE
HOME: Final = "OPJOULE_HOME"
SOURCE: Final = "a clone of OpJoule, on Debian 12, Debian 13 or Raspberry Pi OS"
_ABOUT: Final = "measures joules per database operation on single-board computers, and analyses the records"
_HELP: Final = f"""\
usage: {INSTALLED} COMMAND ...

{_ABOUT[:1].upper() + _ABOUT[1:]}.

On any system:
{{analysis}}

In {SOURCE} (the folder that {HOME} names, else the one that you are in):
{{of_a_clone}}

(each has its own --help)
  completion     print the completion for bash: write eval "$(opjoule completion)" into ~/.bashrc
  man            print the manual page: opjoule man | man -l -

In Python: opjoule.open_run("RECORD").
"""


def main() -> int:
    """Runs one command line; returns the exit status."""
    argv = sys.argv[1:]
    if argv in ([], ["help"], ["-h"], ["--help"]):
        print(_HELP.format(analysis=_listed(ANALYSIS), of_a_clone=_listed(OF_A_CLONE)), end="")
        return 0
    if argv == ["completion"]:
        print(completion(PROGRAMS), end="")
        return 0
    if argv == ["man"]:
        print(manual(PROGRAMS, _ABOUT), end="")
        return 0
    if argv == ["--version"]:
        print(__version__)
        return 0
    compares_commands = argv[0] == "compare" and measures_commands(argv[1:])
    if argv[0] in ANALYSIS and not compares_commands:
        return start.main(argv)
    try:
        if argv[0] in OF_A_CLONE or compares_commands:
            _by_clone(argv)
        raise BadInput(_refusal(one_line(argv[0])))
    except BadInput as error:
        print(f"{INSTALLED}: {error}", file=sys.stderr)
        return error.exit_code


def _listed(commands: Mapping[str, str]) -> str:
    return "\n".join(f"  {name:<14} {about}" for name, about in commands.items())


def _by_clone(argv: list[str]) -> NoReturn:
    """Becomes the clone's program. Raises: BadInput: there is no clone, or its program does not start."""
    clone = _clone(argv[0])
    name, words = ("validate.py", argv[1:]) if argv[0] == "validate" else (MEASURE, argv)
    script = clone / "host" / name
    try:
        os.execv(script, [str(script), *words[words[:1] == ["measure"] :]])
    except OSError as error:
        raise BadInput(f"{script} does not start ({error.strerror}): {argv[0]} needs {SOURCE}") from None


def _clone(command: str) -> Path:
    """Folder of the clone. Raises: BadInput: there is none."""
    stated = os.environ.get(HOME)
    here = Path.cwd()
    for folder in [Path(stated).expanduser()] if stated else [here, *here.parents]:
        if (folder / "host" / MEASURE).is_file():
            return folder.resolve()
    if IS_CLONE and not stated:
        return ROOT
    where = f"{HOME}={one_line(stated)} is none" if stated else f"go into one, or set {HOME} to its folder"
    raise BadInput(f"{command} needs {SOURCE}: {where}")


def _refusal(word: str) -> str:
    """Why a word is no command."""
    if word.startswith("--"):
        return f"no command given: to measure, write {INSTALLED} measure {word} ..., which needs {SOURCE}"
    return f"unknown command '{word}': {suggestion(word, PROGRAMS)}there are {', '.join(PROGRAMS)}"
