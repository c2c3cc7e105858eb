"""`--simulate [PROFILE]`: which twin profile a command line means. Standard library alone, read before set-up, too."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from opjoule.cli.failures import one_line

FOLDER: Final = Path(__file__).resolve().parents[3] / "twins"
"""Where `measure.py twin --fit` puts profiles."""


def twin_profile(text: str) -> Path:
    """A twin profile by its file, or by its name in the folder of profiles.

    Raises: argparse.ArgumentTypeError: there is none; names those in the folder.
    """
    for path in (Path(text), FOLDER / f"{text}.toml"):
        if text.strip() and path.is_file():
            return path
    there = ", ".join(sorted(path.stem for path in FOLDER.glob("*.toml"))) or "none"
    raise argparse.ArgumentTypeError(
        f"{one_line(text)}: there is no such twin profile; {FOLDER.name}/ holds {there}; host/measure.py "
        "twin --fit RECORD writes one"
    )


class Simulate(argparse.Action):
    """Sets `simulate`, and `twin_profile` where a profile is named."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """One `--simulate`."""
        namespace.simulate, namespace.twin_profile = True, values


def add_simulate(group: argparse._ActionsContainer) -> None:
    """--simulate [PROFILE]; the options `simulate` and `twin_profile`."""
    group.add_argument(
        "--simulate",
        action=Simulate,
        nargs="?",
        type=twin_profile,
        default=False,
        metavar="PROFILE",
        help="simulated board and meter; every figure says SIMULATED. PROFILE: a twin that measure.py twin --fit found "
        "from a real record, its file or its name in twins/ (default: published figures, models.toml)",
    )
    group.set_defaults(twin_profile=None)
