"""What OpJoule can do on this computer, in one line, before anything is loaded that only Debian's Python has.

An old Python reads this first: only the standard library, and only what Python 3.6 knows. Started as a program, it ends
with status 1 and the line if nothing of a clone runs here: `this_computer.py NAME`, the program's name in the line.
"""

import os
import platform
import shutil
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)
TEMPORARY_BYTES = 100_000_000
"""Space for temporary files during set-up: pip's largest wheel, pyarrow, has 46 MB; compilers need less."""
TESTED = {"debian": ("12", "13"), "raspbian": ("12", "13")}
"""ID of os-release(5) -> tested VERSION_ID; Raspberry Pi OS is one or the other."""
OS_RELEASE = Path("/etc/os-release")
KERNEL = Path("/proc/sys/kernel/osrelease")
TESTED_SYSTEMS = "Debian 12, Debian 13 or Raspberry Pi OS"
_NEEDS = f"measuring, also on the simulated rig, needs {TESTED_SYSTEMS}"
_INSTALLED = "'pip install .' (in a venv), then 'opjoule runs' or opjoule.open_run"
_ELSEWHERE = {
    "Windows": "; in WSL, 'wsl --install -d Debian' makes one",
    "Darwin": ", for example in a virtual machine",
}
"""platform.system() -> a way to get there."""


def unable(system: str = "", python: "tuple[int, ...]" = ()) -> str:
    """Why nothing in host/ runs on this system or with this Python, in one line; empty if it does.

    Args:
        system: as of platform.system(). Default: this computer's.
        python: first numbers of its version. Default: the running Python's.
    """
    system, python = system or platform.system(), python or tuple(sys.version_info[:3])
    oldest = ".".join(map(str, OLDEST_PYTHON))
    if system != "Linux":
        name = {"Darwin": "macOS"}.get(system, system)
        analysis = f"The analysis runs here, with Python {oldest} or later: {_INSTALLED}"
        return f"this is {name}: {_NEEDS}{_ELSEWHERE.get(system, '')}. {analysis}"
    if python < OLDEST_PYTHON:
        version = ".".join(map(str, python))
        return (
            f"OpJoule needs Python {oldest} or later, and this is {version} of {system_name()}; Debian 12 has 3.11, "
            "Debian 13 has 3.13"
        )
    return ""


def end_if_unable(program: str = "") -> None:
    """Ends this process with status 1 and one line on stderr if nothing in host/ runs here."""
    reason = unable()
    if reason:
        sys.exit(f"{program or Path(sys.argv[0]).name}: {reason}")


def without_packages(os_release: Path = OS_RELEASE) -> str:
    """Why Debian's packages cannot be installed here, and what runs without them, in one line; empty if they can."""
    stated = _stated(os_release)
    kinds = {stated.get("ID", ""), *stated.get("ID_LIKE", "").split()}
    if not kinds.isdisjoint(TESTED) and shutil.which("apt-get") and shutil.which("dpkg-query"):
        return ""
    return (
        f"this is {system_name(os_release)}, without Debian's packages: {_NEEDS}. The analysis runs here: "
        f"host/runs.py, host/compare.py, host/view.py; or {_INSTALLED}. With the counterparts of host/packages.txt "
        "installed by hand, OPJOULE_SKIP_PACKAGES=1 tries the rest"
    )


def unusable(folder: Path) -> str:
    """Why programs cannot be built and started in a folder, in one line; empty if they can."""
    if not os.access(str(folder), os.W_OK):
        return f"{folder} cannot be written by this user: set-up builds there; clone into a folder of your own"
    if os.statvfs(str(folder)).f_flag & os.ST_NOEXEC:
        return f"{folder} is mounted noexec: what is built there cannot be started; move the clone to another disk"
    return ""


def no_temporary_space() -> str:
    """Why temporary files have no place here, in one line; empty if they have."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder}, where temporary files go: {error.strerror}: set TMPDIR to another folder"
    if free_bytes < TEMPORARY_BYTES:
        return (
            f"{folder} has {free_bytes / 1e6:.0f} MB free, and set-up needs {TEMPORARY_BYTES / 1e6:.0f} MB for "
            "temporary files: free some space, or set TMPDIR to another folder"
        )
    return ""


def remarks(os_release: Path = OS_RELEASE, kernel: Path = KERNEL) -> "list[str]":
    """What to know before packages are installed here: a system that is not tested, WSL. One line each."""
    stated, lines = _stated(os_release), []
    if stated.get("VERSION_ID", "") not in TESTED.get(stated.get("ID", ""), ()):
        lines.append(f"{system_name(os_release)} is not tested ({TESTED_SYSTEMS} is); trying")
    if is_wsl(kernel):
        lines.append(
            "WSL: the simulated rig and the analysis run as on Debian; a meter on USB has to be attached from Windows "
            "with usbipd (docs/how-to/other-systems.md)"
        )
    return lines


def system_name(os_release: Path = OS_RELEASE) -> str:
    """The system's own name for itself, as "Fedora Linux 42"."""
    stated = _stated(os_release)
    return stated.get("PRETTY_NAME") or stated.get("NAME") or "a Linux without /etc/os-release"


def is_wsl(kernel: Path = KERNEL) -> bool:
    """True in the Windows Subsystem for Linux, whose kernel says so."""
    return "microsoft" in _text(kernel).lower()


def _stated(os_release: Path) -> "dict[str, str]":
    """Key -> value of a file in the format of os-release(5)."""
    pairs = (line.partition("=") for line in _text(os_release).splitlines() if line[:1] != "#")
    return {key.strip(): value.strip().strip("\"'") for key, equals, value in pairs if equals}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    end_if_unable(" ".join(sys.argv[1:]))
