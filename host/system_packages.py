"""The system's packages, which packages.txt lists with their reasons and apt-get installs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from logged_commands import Interrupted, SetupError, logged, say
from plain_folder import ROOT

LOCK_LIMIT_S = 600
"""How long to wait for another apt, such as the daily update of a computer that has just been started."""


def packages(*sections: str) -> list[tuple[str, str]]:
    """(name, reason) of every Debian package in these sections of host/packages.txt, each once."""
    with_reasons: dict[str, str] = {}
    current = ""
    for line in (ROOT / "host" / "packages.txt").read_text().splitlines():
        if line.startswith("["):
            current = line.strip("[] ")
        elif current in sections and line.strip() and not line.startswith("#"):
            name, _, reason = line.partition("#")
            with_reasons.setdefault(name.strip(), reason.strip())
    return list(with_reasons.items())


def names(*sections: str) -> list[str]:
    """Names of every Debian package in these sections."""
    return [name for name, _ in packages(*sections)]


def all_packages() -> list[str]:
    """Names of every Debian package in host/packages.txt."""
    lines = (ROOT / "host" / "packages.txt").read_text().splitlines()
    return sorted({line.partition("#")[0].strip() for line in lines if line[:1] not in ("[", "#")} - {""})


def skips_packages() -> bool:
    """Whether the user has installed the packages by other means."""
    return os.environ.get("OPJOULE_SKIP_PACKAGES") == "1"


def not_installed(wanted: Iterable[str]) -> list[str]:
    """The packages of `wanted` that are not completely installed, according to dpkg."""
    wanted = list(wanted)
    query = subprocess.run(
        ["dpkg-query", "-W", "-f=${binary:Package} ${db:Status-Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    present = {
        line.split()[0].split(":")[0] for line in query.stdout.splitlines() if line.endswith(" installed")
    }
    return [name for name in wanted if name not in present]


def install_sections(required: Sequence[str], optional: Sequence[str], log: Path) -> dict[str, str]:
    """Installs the missing Debian packages of these sections with apt-get, through sudo if needed.

    Returns: section -> why its packages cannot be installed, for optional sections only.
    Raises: SetupError: there is no apt-get, neither root permission nor sudo, or apt-get failed.
    """
    try:
        _install_section((*required, *optional), log)
    except Interrupted:
        raise
    except SetupError:
        if not optional:
            raise
        _install_section(required, log)
    else:
        return {}
    failed = {}
    for section in optional:
        try:
            _install_section((section,), log)
        except Interrupted:
            raise
        except SetupError:
            failed[section] = f"apt-get cannot install {' '.join(not_installed(names(section)))} (see {log})"
    return failed


def _install_section(sections: Sequence[str], log: Path) -> None:
    rows = [f"{name:<20} {reason}" for name, reason in packages(*sections)]
    why = "OpJoule needs these programs and libraries (Debian's package names):"
    install_named(names(*sections), why, log, rows)


def install_named(wanted: Sequence[str], why: str, log: Path, rows: Sequence[str] = ()) -> None:
    """Installs those of the named packages that are missing.

    Args:
        why: purpose of the packages, for the message on a system where they cannot be installed.
        rows: the packages with their reasons, for that message; if empty, the names are shown.
    Raises: SetupError: as install_sections().
    """
    if skips_packages():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-query")):
        listed = "\n".join(f"    {row}" for row in rows or wanted)
        raise SetupError(
            f"This system has no apt-get.\n{why}\n{listed}\n"
            "Install them, then set OPJOULE_SKIP_PACKAGES=1 and start again."
        )
    missing = not_installed(wanted)
    if not missing:
        return
    say(f"    {len(missing)} to install: {' '.join(missing)}")
    prefix: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            command = "apt-get install --no-install-recommends " + " ".join(missing)
            raise SetupError(f"System packages are missing and there is no sudo. As root run:\n  {command}")
        prefix = ["sudo"]
    prefix += ["env", "DEBIAN_FRONTEND=noninteractive"]
    apt = [*prefix, "apt-get", f"-oDPkg::Lock::Timeout={LOCK_LIMIT_S}", "-q"]
    install = [*apt, "install", "-y", "--no-install-recommends", *missing]
    logged([*apt, "update"], log)
    try:
        logged(install, log)
    except Interrupted:
        raise
    except SetupError:  # also after an earlier installation that was interrupted
        logged([*prefix, "dpkg", "--configure", "-a"], log)
        logged(install, log)
