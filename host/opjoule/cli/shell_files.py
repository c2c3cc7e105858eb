"""`opjoule completion` and `opjoule man`: completion for bash, and the manual page, made from the options."""

from collections.abc import Iterable, Mapping
from typing import Final

from opjoule import __version__
from opjoule.cli.commands import COMMANDS
from opjoule.cli.runs.options import ACTIONS, RUNS
from opjoule.scripts import INSTALLED

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
    """The commands that have options of their own: those of `runs` are its actions."""
    actions = [action.name for action in ACTIONS]
    return [one for name in names for one in (actions if name == RUNS.name else [name])]


def completion(commands: Mapping[str, str]) -> str:
    """Script that completes commands, actions and options; `commands` are those of the program, with their purpose."""
    words = {name: [f"--{option.replace('_', '-')}" for option in _options(name)] for name in _parsed(commands)}
    cases = [f'    "{name} "*) words="{" ".join(options)}" ;;' for name, options in words.items()]
    cases.append(f'    "{RUNS.name} ") words="{" ".join(action.name.split()[1] for action in ACTIONS)}" ;;')
    return _COMPLETION.format(program=INSTALLED, cases="\n".join(cases), commands=" ".join(commands))


def _options(name: str) -> list[str]:
    return [option for option in COMMANDS[name].parser().option_names if len(option) > 1]


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
        lines += [f".SH {INSTALLED} {name}", ".nf", _roff(COMMANDS[name].parser().format_help()), ".fi"]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Text without characters that steer roff: backslashes, and dots and quotes at the beginning of a line."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
