"""Runs the installed program as a system without POSIX would: `other_system.py COMMAND ...`, or `-c CODE`.

Modules and functions that Windows' Python lacks are taken away before anything of OpJoule is loaded, and a file of text
that is opened without a stated encoding is an error, because Windows' default is not UTF-8. It is no Windows: paths,
file systems and the terminal are this computer's.
"""

import ctypes
import errno
import os
import signal
import sys
import types
import warnings

ABSENT_MODULES = ("fcntl", "termios", "pwd", "grp", "resource", "pty", "tty", "posix_ipc", "syslog")
ABSENT_FUNCTIONS = {
    os: (
        *("memfd_create", "posix_fallocate", "fork", "forkpty", "geteuid", "getuid", "getegid", "getgid"),
        *(
            "killpg",
            "setsid",
            "getpgid",
            "mkfifo",
            "sched_getaffinity",
            "statvfs",
            "uname",
            "openpty",
            "nice",
        ),
        *("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"),
    ),
    signal: (
        "pthread_sigmask",
        "SIGHUP",
        "SIGKILL",
        "SIGUSR1",
        "SIG_BLOCK",
        "SIG_UNBLOCK",
        "setitimer",
        "pause",
    ),
}


_open, _fsync = os.open, os.fsync


def open_file(path, flags, *more, **named):
    """As os.open, but a folder cannot be opened."""
    if os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(errno.EACCES, "Permission denied", path)
    return _open(path, flags, *more, **named)


def synced(descriptor):
    """As os.fsync, but the file must have been opened for writing."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as facts:  # noqa: PTH123
        flags = next(int(line.split()[1], 8) for line in facts if line.startswith("flags:"))
    if not flags & (os.O_WRONLY | os.O_RDWR):
        raise OSError(errno.EBADF, "Bad file descriptor")
    _fsync(descriptor)


class Library(ctypes.CDLL):
    """A shared library; the process itself is none."""

    def __init__(self, name, *more, **named):
        if name is None:
            raise TypeError("argument of type 'NoneType' is not iterable")
        super().__init__(name, *more, **named)


def take_away() -> None:
    """Takes away what POSIX systems alone have."""
    import msgspec  # noqa: F401  # libraries have their own way there
    import numpy as np  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import rich.console  # noqa: F401
    import threadpoolctl  # noqa: F401

    for name in ABSENT_MODULES:
        sys.modules[name] = None
    for owner, names in ABSENT_FUNCTIONS.items():
        for name in names:
            vars(owner).pop(name, None)
    pyserial = types.ModuleType("serial")
    pyserial.Serial, pyserial.SerialException = type("Serial", (), {}), OSError
    tools = types.ModuleType("serial.tools")
    tools.list_ports = types.ModuleType("serial.tools.list_ports")
    sys.modules |= {"serial": pyserial, "serial.tools": tools, "serial.tools.list_ports": tools.list_ports}
    ctypes.CDLL = Library
    os.open, os.fsync = open_file, synced
    warnings.filterwarnings("error", category=EncodingWarning, module=r"opjoule\..*")


if __name__ == "__main__":
    take_away()
    if sys.argv[1] == "-c":
        code = sys.argv[2]
        del sys.argv[1:3]
        exec(compile(code, "code", "exec"), {"__name__": "__main__"})
    else:
        from opjoule.cli.installed import main

        sys.exit(main())
