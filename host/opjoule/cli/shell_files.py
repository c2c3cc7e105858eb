"""`opjoule completion` and `opjoule man`: completion for bash, and the manual page, made from the options."""

from collections.abc import Iterable, Mapping
from typing import Final

from opjoule import __version__
from opjoule.base.scripts import INSTALLED
from opjoule.cli.command import Command
from opjoule.cli.commands import commands_of, measure_command

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
