"""`--simulate [PROFILE]`: which twin profile a command line means. Standard library alone, read before set-up, too."""

from __future__ import annotations

import argparse
from dataclasses import field
from pathlib import Path
from typing import Any, Final, cast

from opjoule.cli.failures import one_line
from opjoule.cli.options import flag

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


class _Simulate(argparse.Action):
    """Sets `simulate`, and `twin_profile` where a profile is named."""

    def __call__(
        self, parser: argparse.ArgumentParser, options: Any, profile: Any, name: str | None = None
    ) -> None:
        options.simulate, options.twin_profile = True, profile


def simulate_option() -> bool:
    """The option --simulate [PROFILE], beside a field `twin_profile` for the profile."""
    return flag(
        "simulated board and meter; every figure says SIMULATED. PROFILE: a twin that measure.py twin --fit found "
        "from a real record, its file or its name in twins/ (default: published figures, models.toml)",
        action=_Simulate,
        nargs="?",
        type=twin_profile,
        metavar="PROFILE",
    )


def profile_field() -> Path | None:
    """The field beside it: no option of its own."""
    return cast(Path | None, field(default=None, metadata={"type": Path}))
