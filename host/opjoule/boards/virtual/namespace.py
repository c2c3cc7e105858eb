"""Runs a command in its own user and mount namespace that can execute aarch64 binaries.

The binfmt_misc rule is registered inside the namespace, so this computer's configuration does not change.
Source: Linux admin-guide/binfmt-misc.rst (a mount for each user namespace, Linux 6.7 and later).
"""

import ctypes
import os
import sys

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_IDS = 65536
_RULE = (
    rb":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    rb":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    rb":/usr/bin/qemu-aarch64-static:F"
)
_BINFMT = "/proc/sys/fs/binfmt_misc"


def _checked(status: int, what: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _enter() -> None:
    """New namespaces with this process as root of both; needs root outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    ready_read, ready_write = os.pipe()
    mapped_read, mapped_write = os.pipe()
    child = os.fork()
    if child == 0:  # the mapper stays outside, where it has the rights to write the maps
        os.read(ready_read, 1)
        for kind in ("uid_map", "gid_map"):
            with open(f"/proc/{os.getppid()}/{kind}", "w") as sink:  # noqa: PTH123
                sink.write(f"0 0 {_IDS}")
        os.write(mapped_write, b"1")
        os._exit(0)
    _checked(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID), "unshare")
    os.write(ready_write, b"1")
    os.close(mapped_write)
    if os.read(mapped_read, 1) != b"1":
        raise OSError("the user namespace could not be mapped: run as root")
    os.waitpid(child, 0)
    os.setgid(0)
    os.setuid(0)
    _checked(libc.mount(b"binfmt_misc", _BINFMT.encode(), b"binfmt_misc", 0, None), "mount binfmt_misc")
    with open(f"{_BINFMT}/register", "wb") as sink:  # noqa: PTH123
        sink.write(_RULE)


def main(command: list[str]) -> int:
    """Runs `command` as the first process of the namespace; returns its exit status."""
    _enter()
    child = os.fork()  # a process namespace begins with the next child
    if child == 0:
        os.execvp(command[0], command)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
