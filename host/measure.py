#!/bin/sh
""":"
# Run by sh first: the smallest Debian installation has no Python yet.
if ! command -v python3 >/dev/null 2>&1; then
  echo "python3 is missing: installing it ..." >&2
  command -v apt-get >/dev/null 2>&1 || { echo "install Python 3.11 or later, then start again" >&2; exit 1; }
  as_root=""; [ "$(id -u)" = 0 ] || as_root="sudo"
  { $as_root apt-get update -qq && $as_root apt-get install -qq -y --no-install-recommends python3; } >/dev/null ||
    { echo "apt-get could not install python3: install it by hand, then start again" >&2; exit 1; }
fi
exec python3 "$0" "$@"
":"""
# Measures what one database operation costs in joules: set-up first, then opjoule.cli.measure in .venv.

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bootstrap
from opjoule.cli import arguments


def main() -> int:
    """Parses, sets up what the command needs, and hands over to the environment's Python."""
    asked = arguments.parse(sys.argv[1:])
    try:
        bootstrap.set_up(
            bootstrap.Needs(
                loader=asked.loader,
                simulate=asked.simulate,
                ycsb=asked.ycsb,
                virtual=asked.virtual,
                board=asked.board,
            )
        )
    except bootstrap.SetupError as error:
        print(f"measure.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("measure.py: interrupted during set-up; start again to go on", file=sys.stderr)
        return 130
    os.environ["PYTHONPATH"] = str(bootstrap.ROOT / "host")
    python = str(bootstrap.VENV_PYTHON)
    return os.execv(python, [python, "-m", "opjoule.cli.measure", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
