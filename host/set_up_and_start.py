"""What host/measure.py goes on with in .venv: parses the command line, sets up what the command needs, and runs it."""

import sys

from opjoule.base.scripts import Needs, script_name
from opjoule.cli import start


def set_up(needs: Needs) -> None:
    """Does the set-up; ends the process with one line if it fails."""
    import bootstrap  # noqa: PLC0415  # not needed for help or a mistake on the command line

    bootstrap.set_up_or_end(needs, script_name())


def main() -> int:
    """Runs the command line; returns the exit status."""
    return start.main(sys.argv[1:], set_up)


if __name__ == "__main__":
    sys.exit(main())
