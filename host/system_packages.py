"""The system's packages, which packages.txt lists with their reasons and apt-get installs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import this_computer
from logged_commands import SetupError, logged, say
from plain_folder import ROOT

ELSEWHERE = frozenset({"python3-venv", "openssh-client"})
"""Packages that other systems need not install: venv is a part of Python there, and a board's connection names ssh."""


def packages(section: str) -> list[tuple[str, str]]:
    """(name, reason) of every Debian package in one section of host/packages.txt."""
    with_reasons: list[tuple[str, str]] = []
    current = ""
    for line in (ROOT / "host" / "packages.txt").read_text().splitlines():
        if line.startswith("["):
            current = line.strip("[] ")
        elif current == section and line.strip() and not line.startswith("#"):
            name, _, reason = line.partition("#")
            with_reasons.append((name.strip(), reason.strip()))
    return with_reasons


def _not_installed(names: Iterable[str]) -> list[str]:
    """The packages of `names` that are not installed, according to dpkg."""
    names = list(names)
    query = subprocess.run(
        ["dpkg-query", "-W", "-f=${binary:Package} ${db:Status-Status}\n", *names],
        capture_output=True,
        text=True,
        check=False,
    )
    present = {
        line.split()[0].split(":")[0] for line in query.stdout.splitlines() if line.endswith(" installed")
    }
    return [name for name in names if name not in present]


def install_packages(section: str, log: Path) -> None:
    """Installs the missing Debian packages of one section with apt-get, through sudo if needed.

    Raises: SetupError: there is no apt-get, neither root permission nor sudo, or apt-get failed.
    """
    rows = [f"{name:<20} {reason}" for name, reason in packages(section)]
    names = [name for name, _ in packages(section)]
    install_named(names, "OpJoule needs these programs and libraries (Debian's package names):", log, rows)


def install_named(names: Sequence[str], why: str, log: Path, rows: Sequence[str] = ()) -> None:
    """Installs those of the named packages that are missing.

    Args:
        why: purpose of the packages, for the message on a system where they cannot be installed.
        rows: the packages with their reasons, for that message; if empty, the names are shown.
    Raises: SetupError: as install_packages().
    """
    if os.environ.get("OPJOULE_SKIP_PACKAGES") == "1":
        return
    if reason := this_computer.without_packages():
        if ELSEWHERE.issuperset(names):
            return
        raise SetupError(reason)
    missing = _not_installed(names)
    if not missing:
        return
    for remark in this_computer.remarks():
        say(f"    {remark}")
    say(f"    {len(missing)} to install: {' '.join(missing)}")
    prefix: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            command = "apt-get install --no-install-recommends " + " ".join(missing)
            raise SetupError(f"System packages are missing and there is no sudo. As root run:\n  {command}")
        prefix = ["sudo"]
    prefix += ["env", "DEBIAN_FRONTEND=noninteractive"]
    logged([*prefix, "apt-get", "update", "-q"], log)
    logged([*prefix, "apt-get", "install", "-q", "-y", "--no-install-recommends", *missing], log)
