"""What is said of a command line before .venv is there to parse it: misspelt names, --help. Standard library only.

Names of commands and options are read from the source of their declarations; those of databases, boards and studies are
the names of their files. All else is checked by the program in .venv.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from loader_build import engines
from opjoule.base.errors import suggestion, unknown
from opjoule.base.scripts import STUDIES, Needs, script_name
from opjoule.cli.failures import one_line

PACKAGE = Path(__file__).resolve().parent / "opjoule"
OPTION_LIKENESS = 0.75
"""Least likeness of a suggested option: all begin with the same dashes."""
HELP = """\
usage: measure.py --db NAME --device NAME [options]
       measure.py --study NAME --device NAME [options]
       measure.py COMMAND ...

commands: {commands}
databases: {databases}
boards: {boards}

To begin, run one of these. Each sets up what it needs; --help then explains every option:
  host/measure.py databases                                  lists the databases
  host/measure.py --db leveldb --device rpi4 --simulate      measures without hardware
  host/measure.py init                                       asks what is connected, and writes rig.toml
"""


def check(argv: list[str]) -> None:
    """Ends the program if the command line is empty, asks for help, or has a name that nothing has."""
    words = _before_command(argv)
    commands, options = declared()
    values = {"--db": file_names("boards/databases"), "--device": file_names("boards/profiles")}
    values["--study"] = sorted(path.parent.name for path in STUDIES.glob("*/study.toml"))
    if not argv or words == ["help"] or {"-h", "--help"} & {*words}:
        shown = {"databases": values["--db"], "boards": values["--device"], "commands": sorted(commands)}
        text = HELP.format_map({name: ", ".join(names) for name, names in shown.items()})
        print(text, end="", file=sys.stdout if argv else sys.stderr)
        sys.exit(0 if argv else 2)
    if words and not words[0].startswith("-") and words[0] not in commands:
        _refuse(unknown("command", words[0], sorted(commands)))
    measures = bool(words) and (words[0].startswith("-") or words[0] in ("command", "compare"))
    for word, after in _with_next(words):
        option, equals, value = word.partition("=")
        if option.startswith("--") and option not in options:
            _refuse(f"unrecognized arguments: {option}; {suggestion(option, options, OPTION_LIKENESS)}".rstrip("; "))
        if measures and option in values:
            _check_values(option, value if equals else after, values[option])


def sure_needs(argv: list[str]) -> Needs:
    """What a measurement of one of the loader's engines needs in any case, to be made beside .venv."""
    words = _before_command(argv)
    values = {word.partition("=")[0]: word.partition("=")[2] or after for word, after in _with_next(words)}
    engine = values.get("--db", "")
    if engine not in engines():
        return Needs()
    simulate = "--simulate" in words and "--dry-run" not in words
    return Needs(loader=True, engines=frozenset([engine]), simulate=simulate)


def _before_command(argv: list[str]) -> list[str]:
    """The words before the command that is to be measured."""
    return argv[: argv.index("--")] if "--" in argv else argv


def _with_next(words: list[str]) -> Iterable[tuple[str, str]]:
    return zip(words, [*words, ""][1:], strict=True)


def declared() -> tuple[set[str], set[str]]:
    """Names of the commands, and of the options of all commands with their dashes."""
    formats = (PACKAGE / "results/exports").glob("[!_]*.py")
    commands, options = set(), {"--help", *(f"--{path.stem.replace('_', '-')}" for path in formats)}
    for path in sorted((PACKAGE / "cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                options |= set(_options(node))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Command" and node.args:
                commands |= {str(name.value).split(" ")[0] for name in node.args[:1] if isinstance(name, ast.Constant)}
    return commands - {""}, options


def _options(declaration: ast.ClassDef) -> Iterator[str]:
    """Options of a class: the fields whose type is Annotated[TYPE, HOW], as opjoule/cli/options.py has it."""
    for field in declaration.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        match field.annotation:
            case ast.Subscript(ast.Name("Annotated"), ast.Tuple([kind, how])):
                if isinstance(how, ast.Call) and getattr(how.func, "id", "") not in ("Option", "Flag"):
                    continue
                stated = getattr(how, "keywords", [])
                names = [str(word.value.value) for word in stated if word.arg == "names"]
                name = field.target.id.replace("_", "-")
                own = [f"--{name}", f"--no-{name}"][: 2 if ast.unparse(kind) == "bool | None" else 1]
                yield from names[0].split() if names else own


def file_names(folder: str) -> list[str]:
    """Names of the TOML files in a folder of the package."""
    return sorted(path.stem for path in (PACKAGE / folder).glob("*.toml"))


def _check_values(option: str, value: str, known: Iterable[str]) -> None:
    """Ends the program if a value, or one of several with commas, is neither known nor a path."""
    for name in value.split(","):
        if name and "/" not in name and name.strip() not in known:
            _refuse(unknown(option, name, known))


def _refuse(why: str) -> None:
    print(f"{script_name()}: {one_line(why)} ('host/measure.py --help' explains)", file=sys.stderr)
    sys.exit(2)
