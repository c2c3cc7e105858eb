"""The last line of every command that fails: one line on stderr and the exit status, never a traceback.

What the program expects is an OpJouleError. What the computer under it does (a full disk, a folder that is gone, no
memory left) can happen at any line; it is told here with its path and a remedy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from opjoule.errors import Interrupted, OpJouleError

_REMEDIES: Final = {
    errno.ENOSPC: "free some space there, or give --out on another disk",
    errno.EDQUOT: "your quota is used up: free some space there, or give --out on another disk",
    errno.EROFS: "give --out on a disk that can be written",
    errno.EACCES: "it belongs to another user: change its owner with 'sudo chown -R $USER', or give another place",
    errno.EPERM: "it belongs to another user: change its owner with 'sudo chown -R $USER', or give another place",
    errno.ENOENT: "it is not there, or was removed while it was in use",
    errno.ENOTDIR: "a part of the path is a file: give another place",
    errno.EISDIR: "a directory is in the place of a file: move it away",
    errno.ENOTEMPTY: "it holds files: move them away",
    errno.EEXIST: "it is there already: move it away, or give another place",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "its links lead in a circle",
    errno.EMFILE: "too many files are open: raise 'ulimit -n'",
    errno.ENOMEM: "close other programs",
    errno.EIO: "the medium is failing: look at 'dmesg'",
}


def told(program: str, run: Callable[[], int]) -> int:
    """The exit status of `run`; what kept it from its end is one line on stderr."""
    try:
        status = run()
        sys.stdout.flush()
        return status
    except OpJouleError as error:
        return _say(program, str(error), error.exit_code)
    except KeyboardInterrupt:
        return _say(
            program, "interrupted; a record that was begun is kept and says partial", Interrupted.exit_code
        )
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _say(program, of_system(error), OpJouleError.exit_code)
    except MemoryError:
        return _say(
            program, "this needs more memory than there is: close other programs, or use less data", 1
        )
    except subprocess.SubprocessError as error:
        return _say(program, f"a program it needs failed: {error}; run host/measure.py doctor", 1)


def of_system(error: OSError) -> str:
    """An error of the operating system in one line: path, reason, what to do."""
    where = " and ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    what = error.strerror or str(error) or type(error).__name__
    remedy = _REMEDIES.get(error.errno or 0, "run host/measure.py doctor")
    return f"{where}: {what}: {remedy}" if where else f"{what}: {remedy}"


def one_line(text: str) -> str:
    """The text on one line, whatever names in it hold: control characters and broken encodings as escapes."""
    words = " ".join(text.split())
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words
    )


def plain_output() -> None:
    """A letter that the terminal's encoding does not have comes as an escape instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _say(program: str, why: str, status: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(f"{program}: {one_line(why)}", file=sys.stderr)
    return status
