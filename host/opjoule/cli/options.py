"""Options of a command: fields of a frozen dataclass, from which the parser is built.

    class ReportOptions(Options):
        record: Annotated[Path, Argument("DIR", "a run record, for example one under runs/")]
        seconds: Annotated[Seconds | None, Option("N", "length (default: until Ctrl-C)")] = None

A field has the option's name: `storage_meter` is --storage-meter. Its type has the limits, and how
often an option may be given follows from it: a bool is a flag, a bool | None has an opposite, --no-OPTION, and a tuple
may be given several times. Command line, cells of a campaign and jobs of a fleet are all checked by these types.
"""

from __future__ import annotations

import argparse
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NoReturn, Self, dataclass_transform, get_args, get_origin

from msgspec import Meta

from opjoule.base.errors import BadInput, suggestion
from opjoule.base.scripts import script_name
from opjoule.base.settings import as_struct, hints_of, setting, written
from opjoule.cli.failures import one_line

SEED_MAX: Final = (1 << 31) - 1
"""Largest seed that the loader, the simulators and Python's generators all accept."""
REPEATS_MAX: Final = 10_000
THREADS_MAX: Final = 1024
COUNT_MAX: Final = 10**18
NAME_MAX: Final = 60
"""Greatest length of a compared command's name, which becomes a part of its records' names."""

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX, description="a whole number of at least 0")]
Positive = Annotated[int, Meta(ge=1, le=COUNT_MAX, description="a whole number of at least 1")]
Port = Annotated[int, Meta(ge=0, lt=1 << 16, description="a port from 0 to 65535")]
Seed = Annotated[int, Meta(ge=0, le=SEED_MAX, description=f"a whole number from 0 to {SEED_MAX}")]
Days = Annotated[int, Meta(ge=1, le=36_500, description="a number of days from 1 to 36500")]
RepeatCount = Annotated[int, Meta(ge=1, le=REPEATS_MAX, description=f"a whole number from 1 to {REPEATS_MAX}")]
ThreadCount = Annotated[int, Meta(ge=1, le=THREADS_MAX, description=f"a number of threads from 1 to {THREADS_MAX}")]
Again = Annotated[int, Meta(ge=0, le=9, description="a whole number from 0 to 9")]
Celsius = Annotated[float, Meta(ge=-40, le=85, description="a room's temperature from -40 to 85")]
Seconds = Annotated[float, Meta(ge=0, le=86400, description="a number of seconds from 0 to 86400")]
Share = Annotated[float, Meta(gt=0, le=1, description="a number above 0 and at most 1, for example 0.1")]
Voltage = Annotated[float, Meta(gt=0, le=1000, description="a voltage above 0 and up to 1000 V, for example 5.1")]
Hertz = Annotated[float, Meta(gt=0, le=1e9, description="a number a second above 0, for example 100")]
PpmPerKelvin = Annotated[float, Meta(ge=0, le=5000, description="ppm per kelvin from 0 to 5000")]


def _parts_of_one(text: str) -> float:
    return float(text.removesuffix("%")) / 100


Percent = Annotated[float, written(_parts_of_one, "a percentage above 0 and below 100, for example 3%", gt=0, lt=1)]
"""A part of 1, written in percent."""


def _span_s(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d)", text.strip())
    if not match:
        raise ValueError
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[match[2]]


TimeSpan = Annotated[float, written(_span_s, "a length of time, for example 90min, 2h or 3d", gt=0)]
"""A length of time [s], written with its unit."""


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > NAME_MAX:
        raise ValueError
    return text.strip()


CommandName = Annotated[str, written(_name, f"a name of 1 to {NAME_MAX} printable characters")]
"""Name of a compared command: printable, on one line."""


HELP_WIDTH: Final = 80
METER_KINDS: Final = "{meter kinds}"
IMPORT_SENSORS: Final = "{import sensors}"
MEDIUM_HELP: Final = "sd, emmc, ssd-usb2, ssd-usb3 (default: the board's first); several with commas are each measured"
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


@dataclass(frozen=True)
class Option:
    """How a field is given on the command line, and its help."""

    metavar: str | None
    """Name of the value in the help; None: the choices."""
    about: str
    names: str | None = None
    """The option's names, with their dashes (default: that of the field); empty for a value without one."""
    choices: Sequence[str] = ()
    exclusive: bool | None = None
    """At most one option of its group may be given; True: exactly one must be."""
    together: bool = False
    """Several values follow the option once."""
    action: type[argparse.Action] | None = None
    """Sets the field, and perhaps others."""


def Flag(about: str, *, exclusive: bool | None = None) -> Option:  # an Option
    """An option without a value."""
    return Option(None, about, exclusive=exclusive)


def Argument(metavar: str | None, about: str, choices: Sequence[str] = ()) -> Option:  # as Option
    """A value without an option's name."""
    return Option(metavar, about, "", choices)


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
    def of_settings(cls, values: Mapping[str, Any], where: str) -> Self:
        """Options from values by field, as files and JSON have them. Raises: BadInput: begins with `where`."""
        made = as_struct(dict(values), cls, where, texts=True)
        for name, option in cls.declared().items():
            value = getattr(made, name)
            if option.choices and value not in (None, *option.choices):
                raise BadInput(f"{where} {name} must be one of {', '.join(option.choices)}, not {value!r}")
        return made

    @property
    def values(self) -> dict[str, Any]:
        """Field -> value."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def declared(cls) -> dict[str, Option]:
        """Field -> its option; without the fields that are none."""
        notes = {name: getattr(hint, "__metadata__", (None,))[-1] for name, hint in hints_of(cls).items()}
        return {name: note for name, note in notes.items() if isinstance(note, Option)}

    @classmethod
    def groups(cls) -> Iterator[tuple[str, list[str]]]:
        """Titles of the help's groups, each with its fields, in order."""
        declared = cls.declared()
        stated = {name: kind for kind in reversed(cls.__mro__) for name in inspect.get_annotations(kind)}
        for kind in reversed(cls.__mro__):
            title = vars(kind).get("GROUP", "")
            yield title, [field.name for field in fields(cls) if field.name in declared and stated[field.name] is kind]


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
        declared, hints = options.declared(), hints_of(options)
        defaults = {field.name: field for field in fields(options)}
        for title, members in options.groups():
            for member in members:
                group = groups[title] if title in groups else self.add_argument_group(title)
                groups[title] = group
                option = declared[member]
                if option.exclusive is not None:
                    group = exclusive.get(title) or group.add_mutually_exclusive_group(required=option.exclusive)
                    exclusive[title] = group
                _add(group, option, defaults[member], hints[member])

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


def _add(group: argparse._ActionsContainer, option: Option, field: Field[Any], hint: Any) -> None:
    """Adds an option to a parser; what argparse does with it follows from the field's type."""
    kind = Annotated[hint.__origin__, *hint.__metadata__[:-1]] if hint.__metadata__[:-1] else hint.__origin__
    has_default = field.default is not MISSING
    keywords: dict[str, Any] = {"help": option.about}
    if has_default:
        keywords["default"] = [*field.default] if isinstance(field.default, tuple) else field.default
    if option.action:
        keywords |= {"action": option.action, "metavar": option.metavar, "nargs": "?"}
    elif kind is bool:
        keywords["action"] = "store_true"
    elif kind == bool | None:
        keywords["action"] = argparse.BooleanOptionalAction
    else:
        is_list = get_origin(kind) is tuple
        keywords |= {"metavar": option.metavar, "type": partial(_read, get_args(kind)[0] if is_list else kind)}
        keywords |= {"choices": option.choices} if option.choices else {}
        if is_list and option.names != "" and not option.together:
            keywords["action"] = "append"
        elif is_list:
            keywords["nargs"] = "*" if has_default and not option.together else "+"
        elif option.names == "" and has_default:
            keywords["nargs"] = "?"
    if option.names == "":
        group.add_argument(field.name, **keywords)
        return
    names = option.names or f"--{field.name.replace('_', '-')}"
    group.add_argument(*names.split(), dest=field.name, required=not has_default, **keywords)


def _read(kind: Any, text: str) -> Any:
    """A value of the command line. Raises: argparse.ArgumentTypeError: the text is none of its type."""
    try:
        return setting(text, kind, texts=True)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None


def twin_profile(text: str) -> Path:
    """File of a twin profile, which is given by its path or by its name in the folder of profiles.

    Raises: ValueError: there is no such profile; the message lists those in the folder.
    """
    for path in (Path(text), TWINS / f"{text}.toml"):
        if text.strip() and path.is_file():
            return path
    there = ", ".join(sorted(path.stem for path in TWINS.glob("*.toml"))) or "none"
    raise ValueError(
        f"{one_line(text)}: there is no such twin profile; {TWINS.name}/ contains {there}; to make one: "
        "host/measure.py twin --fit RECORD"
    )


class _Simulate(argparse.Action):
    """Sets `simulate`, and `twin_profile` if a profile is named."""

    def __call__(self, parser: argparse.ArgumentParser, options: Any, profile: Any, name: str | None = None) -> None:
        try:
            options.simulate, options.twin_profile = True, None if profile is None else twin_profile(profile)
        except ValueError as error:
            takes_command = any(action.dest == "command" for action in parser._actions)
            hint = "; a command to measure is given after --" if takes_command else ""
            raise argparse.ArgumentError(self, f"{error}{hint}") from None


SIMULATE: Final = Option(
    "PROFILE",
    "simulated board and meter; every figure is marked SIMULATED. PROFILE: a twin that measure.py twin --fit made "
    "from a real record, given by its file or its name in twins/ (default: published figures, models.toml)",
    action=_Simulate,
)
"""The option --simulate [PROFILE]; the class also needs a field `twin_profile` for the profile."""
