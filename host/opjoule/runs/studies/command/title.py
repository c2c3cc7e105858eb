"""What a command line is called: the program that a shell starts, the script that an interpreter runs."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

SHELL: Final = ("sh", "-c")
_PLAIN_WORD: Final = re.compile(r"[\w.+/-]+(?=\s|$)")
_INTERPRETER: Final = re.compile(r"(python|pypy|perl|ruby|node|bash|sh|lua|julia|Rscript)[\d.]*")
_WITH_VALUE: Final = ("-W", "-X")
"""Options of Python that have a value in the next word."""


def program_of(command: Sequence[str]) -> str:
    """The program that a command starts: of a shell command its first word, if that is a plain name; else the shell."""
    if tuple(command[:2]) == SHELL and len(command) == 3 and (word := _PLAIN_WORD.match(command[2].lstrip())):
        return word[0]
    return command[0]


def title_of(command: Sequence[str]) -> str:
    """Name of the work without its folder.

    It is `job.py` for `python3 -O {files}/job.py --data x`, and `dd` for `sh -c 'dd if=...'`.
    """
    name = PurePosixPath(program_of(command)).name
    rest = iter(command[1:] if _INTERPRETER.fullmatch(name) else ())
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, "")
        elif word == "-m":
            return next(rest, name)
        elif word in ("-c", "-e"):
            return name
        elif not word.startswith("-"):
            return PurePosixPath(word).name
    return name
