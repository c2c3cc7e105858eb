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
unset PYTHONPATH # the program finds its own packages alone
python=${0%/*}/../.venv/bin/python # one start of Python instead of two where .venv is made
[ -x "$python" ] || python=python3
# A Ctrl-C is blocked until Python can handle it (env of coreutils 8.31; other versions lack the option). sh does not
# handle it: a signal that comes right before exec would be lost.
blocked=""; env --block-signal=HUP,INT,TERM true 2>/dev/null && blocked="env --block-signal=HUP,INT,TERM"
# shellcheck disable=SC2086 # two words
exec $blocked "$python" "$0" "$@"
":"""
# Measures the joules of a database operation: makes .venv if it is missing, then goes on in it (set_up_and_start.py).

import signal

# Signals are blocked until they can be handled: here, and again while set_up_and_start.py loads.
if hasattr(signal, "pthread_sigmask"):  # Windows has none
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))

import os  # signals first
import sys
from pathlib import Path
from typing import Final, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parent))

import this_computer  # the path is set above

this_computer.end_if_unable()

from environment import VENV, VENV_PYTHON, is_filled  # noqa: E402  # a Python without packages has what follows
from opjoule.base.errors import of_system  # noqa: E402
from opjoule.base.scripts import script_name  # noqa: E402
from opjoule.cli.failures import answer_with, hold_back, interrupt  # noqa: E402

_IN_VENV: Final = Path(sys.prefix).resolve() == VENV  # the clone may be started through a link


def main() -> int:
    """Makes .venv if it is missing, and goes on in it."""
    try:
        answer_with(interrupt)
        os.environ.pop("PYTHONPATH", None)  # .venv finds its own packages alone
        was_filled = is_filled()
        if not was_filled:
            _make_venv()
        if not was_filled or not _IN_VENV:
            _go_on(str(VENV_PYTHON), "set_up_and_start.py")
        hold_back()
    except OSError as error:
        print(f"{script_name()}: {VENV_PYTHON} does not start: {of_system(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{script_name()}: interrupted before anything was done", file=sys.stderr)
        return 130
    import set_up_and_start  # noqa: PLC0415  # .venv alone has what it loads

    return set_up_and_start.main()


def _make_venv() -> None:
    made_by = os.path.realpath(sys.executable)
    if _IN_VENV and made_by != sys.executable:
        _go_on(made_by, "measure.py")  # the Python of .venv cannot make it anew
    import bootstrap  # noqa: PLC0415  # slow to load, and seldom needed
    import first_start  # noqa: PLC0415

    first_start.check(sys.argv[1:])  # --help ends here
    bootstrap.set_up_or_end(first_start.sure_needs(sys.argv[1:]), script_name())


def _go_on(python: str, program: str) -> NoReturn:
    """Continues with another Python, in which `program` answers a signal that comes meanwhile."""
    hold_back()
    os.execv(python, [python, str(Path(__file__).resolve().with_name(program)), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
