#!/bin/sh
""":"
# sh runs this part first, because the smallest Debian installation has no Python.
if ! command -v python3 >/dev/null 2>&1; then
  name=measure.py; [ -f "${0%/*}/${1:-}.py" ] && name="$1.py" # as in opjoule/base/scripts.py
  trap 'echo "$name: interrupted before anything was done" >&2; exit 130' HUP INT TERM
  command -v apt-get >/dev/null 2>&1 ||
    { echo "$name: install Python 3.11 or later; measuring needs Debian 12, Debian 13 or Raspberry Pi OS" >&2; exit 1; }
  as_root=""; [ "$(id -u)" = 0 ] || as_root="sudo"
  [ -z "$as_root" ] || command -v sudo >/dev/null 2>&1 ||
    { echo "$name: python3 is missing, and there is no sudo: as root run apt-get install python3" >&2; exit 1; }
  echo "python3 is missing: installing it ..." >&2
  { $as_root apt-get update -qq && $as_root apt-get install -qq -y --no-install-recommends python3; } >/dev/null ||
    { echo "$name: apt-get could not install python3: install it by hand, then start again" >&2; exit 1; }
  trap - HUP INT TERM
fi
# A Ctrl-C is blocked until Python can handle it (env of coreutils 8.31; other versions lack the option). sh does not
# handle it: a signal that comes right before exec would be lost.
blocked=""; env --block-signal=HUP,INT,TERM true 2>/dev/null && blocked="env --block-signal=HUP,INT,TERM"
# shellcheck disable=SC2086 # two words
exec $blocked python3 "$0" "$@"
":"""
# Measures the joules of a database operation: makes .venv if it is missing, then goes on in it (set_up_and_start.py).

import signal

# Signals are blocked until they can be handled: here, and again in set_up_and_start.py.
if hasattr(signal, "pthread_sigmask"):  # Windows has none
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))

import os  # signals first
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import this_computer  # the path is set above

this_computer.end_if_unable()

from environment import VENV_PYTHON, is_filled  # noqa: E402  # what Debian's Python alone has comes from here on
from opjoule.base.errors import of_system  # noqa: E402
from opjoule.base.scripts import script_name  # noqa: E402
from opjoule.cli.failures import answer_with, hold_back, interrupt  # noqa: E402


def main() -> int:
    """Makes .venv if it is missing, and starts the program in it."""
    try:
        answer_with(interrupt)
        if not is_filled():
            import bootstrap  # noqa: PLC0415  # slow to load, and seldom needed
            import first_start  # noqa: PLC0415

            first_start.check(sys.argv[1:])  # --help ends here
            bootstrap.set_up_or_end(first_start.sure_needs(sys.argv[1:]), script_name())
        os.environ.pop("PYTHONPATH", None)  # .venv finds its own packages alone
        hold_back()
        program = Path(__file__).resolve().with_name("set_up_and_start.py")
        return os.execv(VENV_PYTHON, [str(VENV_PYTHON), str(program), *sys.argv[1:]])
    except OSError as error:
        print(f"{script_name()}: {VENV_PYTHON} does not start: {of_system(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{script_name()}: interrupted before anything was done", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
