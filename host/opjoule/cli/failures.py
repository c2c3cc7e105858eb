"""What a failed command leaves: one line on stderr and the exit status, never a traceback.

A failure that the program expects is an OpJouleError. A failure of the computer (a full disk, a missing folder, no
memory left) can happen at any line; it is reported here with its path and a remedy. Ctrl-C, SIGTERM and a closed
terminal are blocked until a handler is installed; all three are then handled alike.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final

from opjoule.base.errors import INTERRUPTED, Interrupted, OpJouleError, of_system
from opjoule.base.passwords import masked
from opjoule.base.scripts import script_name

ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end the program; Windows has no SIGHUP."""
_NO_THREAD: Final = "can't start new thread"
"""Python's message if the limit of processes, or of address space, leaves no room for a thread's stack."""
EXTRAS: Final = {
    name: f"or OpJoule with its extra [{extra}]" for name, extra in (("matplotlib", "figures"), ("duckdb", "many"))
}
"""Libraries that an installed package may lack, and how to install them."""


def reporting_failures(program: str, run: Callable[[], int]) -> int:
    """Exit status of `run`; prints one line on stderr if it fails."""
    try:
        status = run()
        sys.stdout.flush()
        return status
    except OpJouleError as error:
        return _say(program, str(error), error.exit_code)
    except KeyboardInterrupt as error:
        why = f"{str(error) or INTERRUPTED}; a record already begun is kept, with status partial"
        return _say(program, why, Interrupted.exit_code)
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _say(program, of_system(error), OpJouleError.exit_code)
    except ModuleNotFoundError as error:
        if not (extra := EXTRAS.get(error.name or "")):
            raise
        return _say(program, f"this needs {error.name}: pip install {error.name}, {extra}", OpJouleError.exit_code)
    except RuntimeError as error:
        if str(error) != _NO_THREAD:
            raise
        return _say(program, f"{error}: raise 'ulimit -u' or 'ulimit -v', or close other programs", 1)
    except MemoryError:
        return _say(program, "not enough memory: close other programs, or use less data", 1)
    except subprocess.SubprocessError as error:
        return _say(program, f"a program it needs failed: {error}; run host/measure.py doctor", 1)


def one_line(text: str) -> str:
    """The text on one line, with control characters and invalid encodings as escapes."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)


def masked_tracebacks() -> None:
    """Removes passwords from the tracebacks of program defects, in threads too."""

    def show(kind: type[BaseException], fault: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(masked("".join(traceback.format_exception(kind, fault, trace))), end="", file=sys.stderr)

    sys.excepthook = show
    threading.excepthook = lambda ended: show(ended.exc_type, ended.exc_value, ended.exc_traceback)


def _say(program: str, why: str, status: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(f"{program}: {masked(one_line(why))}", file=sys.stderr)
    return status


def hold_back() -> None:
    """Blocks the signals of ENDING. One that arrives stays pending, across exec too, until answer_with()."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def answer_with(handler: Callable[[int, FrameType | None], None]) -> None:
    """Installs `handler` for the signals of ENDING, pending ones too. Ignored ones (nohup, background) stay ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    if hasattr(signal, "pthread_sigmask"):  # Windows cannot block signals
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, as Python itself does for Ctrl-C; its text names another signal."""
    name = signal.Signals(number).name
    raise KeyboardInterrupt(*([f"interrupted by {name}"] if name != "SIGINT" else []))


def leave(number: int, frame: FrameType | None) -> None:
    """Ends the program at once while modules load, where an exception could be swallowed or replaced."""
    os.write(2, f"{script_name()}: interrupted before anything was done\n".encode())
    os._exit(Interrupted.exit_code)
