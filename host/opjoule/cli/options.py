"""Options of a command: fields of a frozen dataclass, from which the parser is built.

    class ReportOptions(Options):
        record: Path = positional(directory, "DIR", "a run record, for example one under runs/")

A field has the option's name: `storage_meter` is --storage-meter. Only this module turns argparse's result into such a
dataclass.
"""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, Self, TypeVar, cast, dataclass_transform, overload

from opjoule.base.errors import suggestion
from opjoule.base.scripts import script_name
from opjoule.cli.failures import one_line

T = TypeVar("T")
HELP_WIDTH: Final = 80
METER_KINDS: Final = "{meter kinds}"
IMPORT_SENSORS: Final = "{import sensors}"
LIVE_HELP: Final = "serve a page on this computer that shows power, operations, temperature and phase as they happen"
ROOM_TEMPERATURE_HELP: Final = (
    "room temperature in degrees Celsius; it is compared with the temperature of the sensor's calibration"
)
TWINS: Final = Path(__file__).resolve().parents[3] / "twins"
"""Folder where `measure.py twin --fit` writes profiles."""
OPTION_LIKENESS: Final = 0.75
"""Least likeness of a suggested option: all begin with the same dashes."""
RIG_FILE: Final = Path("rig.toml")
RIG_HELP: Final = "the rig's description (default: rig.toml)"
NAME: Final = "name"
"""Key of a field's metadata: the option's names with their dashes; empty for a value without one."""
EXCLUSIVE: Final = "exclusive"
"""Key of a field's metadata: at most one option of its group may be given; True: exactly one must be."""


@overload
def option(read: Callable[[str], T], metavar: str | None, about: str, **more: Any) -> T | None: ...
@overload
def option(read: Callable[[str], T], metavar: str | None, about: str, default: T, **more: Any) -> T: ...
def option(read: Any, metavar: str | None, about: str, default: Any = None, **more: Any) -> Any:
    """An option with a value.

    Args:
        read: makes the value from the text; raises argparse.ArgumentTypeError.
        metavar: name of the value in the help.
        about: the help text.
        default: value if the option is not given.
        more: further arguments of argparse's add_argument().
    """
    return field(default=default, metadata={"type": read, "metavar": metavar, "help": about, **more})


def required(read: Callable[[str], T], metavar: str | None, about: str) -> T:
    """An option that must be given."""
    return cast(T, field(metadata={"type": read, "metavar": metavar, "help": about, "required": True}))


def repeated(read: Callable[[str], T], metavar: str | None, about: str, **more: Any) -> tuple[T, ...]:
    """An option that may be given several times."""
    return cast(tuple[T, ...], option(read, metavar, about, cast(T, ()), action="append", **more))


def several(read: Callable[[str], T], metavar: str | None, about: str) -> tuple[T, ...]:
    """An option followed by one or more values."""
    return cast(tuple[T, ...], option(read, metavar, about, cast(T, ()), nargs="+"))


def flag(about: str, **more: Any) -> bool:
    """An option without a value."""
    return field(default=False, metadata={"action": "store_true", "help": about, **more})


def switch(about: str) -> bool | None:
    """An option with an opposite, --no-OPTION; None if neither is given."""
    metadata = {"action": argparse.BooleanOptionalAction, "help": about}
    return cast(bool | None, field(default=None, metadata=metadata))


def positional(read: Callable[[str], T], metavar: str | None, about: str, **more: Any) -> T:
    """A value without an option's name."""
    return cast(T, field(metadata={"type": read, "metavar": metavar, "help": about, NAME: "", **more}))


def optional(read: Callable[[str], T], metavar: str | None, about: str) -> T | None:
    """A value without an option's name; None if it is left out."""
    return option(read, metavar, about, nargs="?", **{NAME: ""})


def positionals(
    read: Callable[[str], T], metavar: str | None, about: str, default: tuple[T, ...] = (), nargs: str = "*"
) -> tuple[T, ...]:
    """Any number of values without an option's name; with `nargs` "+" at least one."""
    return cast(tuple[T, ...], option(read, metavar, about, cast(T, default), nargs=nargs, **{NAME: ""}))


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a command line. A class that several commands share may have a GROUP, its title in the help.

    A subclass becomes a frozen dataclass automatically.
    """

    GROUP: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def parsed(cls, parser: Parser, words: Sequence[str]) -> Self:
        """The options of a command line; argparse ends the program on a mistake."""
        given = vars(parser.parse_args(words))
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Self:
        """Options whose fields were written as JSON. Raises: TypeError, ValueError: written by another version."""
        reads = {field.name: field.metadata.get("type", str) for field in fields(cls)}
        return cls(**{name: _restored(value, reads.get(name, str)) for name, value in values.items()})

    @property
    def values(self) -> dict[str, Any]:
        """Field -> value."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def groups(cls) -> Iterator[tuple[str, list[Field[Any]]]]:
        """Titles of the help's groups, each with its fields, in order."""
        described = {field.name: field for field in fields(cls) if "help" in field.metadata}
        stated = {name: kind for kind in reversed(cls.__mro__) for name in inspect.get_annotations(kind)}
        for kind in reversed(cls.__mro__):
            title = vars(kind).get("GROUP", "")
            yield title, [option for name, option in described.items() if stated[name] is kind]


def _restored(value: Any, read: Callable[[str], Any]) -> Any:
    if isinstance(value, list):
        return tuple(_restored(element, read) for element in value)
    return read(value) if isinstance(value, str) else value


class Parser(argparse.ArgumentParser):
    """Argument parser that reports a mistake in one line and prints an epilog unchanged."""

    def __init__(
        self,
        command: str,
        options: type[Options],
        *,
        description: str,
        epilog: str = "",
        usage: str | None = None,
    ) -> None:
        """Parser of `measure.py COMMAND`, or of measure.py itself if the command is empty."""
        words = command.split()
        self._program = script_name(words)
        super().__init__(
            prog=" ".join([self._program, *(word for word in words if f"{word}.py" != self._program)]),
            usage=usage,
            description=textwrap.fill(description, HELP_WIDTH),
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        groups: dict[str, argparse._ActionsContainer] = {"": self}
        exclusive: dict[str, argparse._ActionsContainer] = {}
        for title, members in options.groups():
            for member in members:
                group = groups[title] if title in groups else self.add_argument_group(title)
                groups[title] = group
                if EXCLUSIVE in member.metadata:
                    must = member.metadata[EXCLUSIVE]
                    group = exclusive.get(title) or group.add_mutually_exclusive_group(required=must)
                    exclusive[title] = group
                _add(group, member)

    def format_help(self) -> str:
        """The help; METER_KINDS and IMPORT_SENSORS in an option's help are replaced by the kinds and sensors."""
        for action in self._actions:
            if action.help and (METER_KINDS in action.help or IMPORT_SENSORS in action.help):
                from opjoule.meters.registry import import_sensors, known_kinds  # noqa: PLC0415  # slow to load

                texts = {METER_KINDS: known_kinds(), IMPORT_SENSORS: ", ".join(import_sensors())}
                for mark, text in texts.items():
                    action.help = action.help.replace(mark, text.replace("%", "%%"))
        return super().format_help()

    @property
    def option_names(self) -> list[str]:
        """Names of the options as a file has them: without dashes at the front, with underscores inside."""
        words = [word for action in self._actions for word in action.option_strings]
        return sorted({word.lstrip("-").replace("-", "_") for word in words})

    def error(self, message: str) -> NoReturn:
        """Reports the mistake, with the most similar option if one is unknown, and points to --help; exit status 2."""
        unknown = re.search(r"^unrecognized arguments: (?:.* )?(--?[^\s=]+)", message)
        known = [word for action in self._actions for word in action.option_strings]
        hint = suggestion(unknown[1], known, OPTION_LIKENESS).rstrip() if unknown else ""
        self.exit(
            2,
            f"{self._program}: {one_line(f'{message}; {hint}' if hint else message)} ('{self.prog} --help' explains)\n",
        )

    def refuse(self, error: Exception) -> NoReturn:
        """Says what is wrong with a name or file of the command line; exit status 2."""
        self.exit(2, f"{self._program}: {one_line(str(error))}\n")


def _add(group: argparse._ActionsContainer, option: Field[Any]) -> None:
    keywords = {key: value for key, value in option.metadata.items() if key not in (NAME, EXCLUSIVE)}
    if option.default is not MISSING:
        keywords["default"] = [*option.default] if isinstance(option.default, tuple) else option.default
    name = option.metadata.get(NAME, f"--{option.name.replace('_', '-')}")
    if name:
        group.add_argument(*name.split(), dest=option.name, **keywords)
    else:
        group.add_argument(option.name, **keywords)


def twin_profile(text: str) -> Path:
    """File of a twin profile, which is given by its path or by its name in the folder of profiles.

    Raises: argparse.ArgumentTypeError: there is no such profile; the message lists those in the folder.
    """
    for path in (Path(text), TWINS / f"{text}.toml"):
        if text.strip() and path.is_file():
            return path
    there = ", ".join(sorted(path.stem for path in TWINS.glob("*.toml"))) or "none"
    raise argparse.ArgumentTypeError(
        f"{one_line(text)}: there is no such twin profile; {TWINS.name}/ contains {there}; to make one: "
        "host/measure.py twin --fit RECORD"
    )


class _Simulate(argparse.Action):
    """Sets `simulate`, and `twin_profile` if a profile is named."""

    def __call__(self, parser: argparse.ArgumentParser, options: Any, profile: Any, name: str | None = None) -> None:
        try:
            options.simulate, options.twin_profile = True, None if profile is None else twin_profile(profile)
        except argparse.ArgumentTypeError as error:
            takes_command = any(action.dest == "command" for action in parser._actions)
            hint = "; a command to measure is given after --" if takes_command else ""
            raise argparse.ArgumentError(self, f"{error}{hint}") from None


def simulate_option() -> bool:
    """The option --simulate [PROFILE]; the class also needs a field `twin_profile` for the profile."""
    return flag(
        "simulated board and meter; every figure is marked SIMULATED. PROFILE: a twin that measure.py twin --fit made "
        "from a real record, given by its file or its name in twins/ (default: published figures, models.toml)",
        action=_Simulate,
        nargs="?",
        metavar="PROFILE",
    )


def profile_field() -> Path | None:
    """The field `twin_profile`, which is no option of its own; --simulate sets it."""
    return cast(Path | None, field(default=None, metadata={"type": Path}))
