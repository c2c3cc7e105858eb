"""The system's packages, which packages.txt lists with their reasons and apt-get installs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import this_computer
from logged_commands import Lasting, SetupError, logged, say
from plain_folder import ROOT

LOCK_LIMIT_S = 600
"""How long to wait for another apt, such as the daily update of a computer that has just been started."""


def names(*sections: str) -> list[str]:
    """Names of the Debian packages in these sections of host/packages.txt, each once."""
    return list(dict.fromkeys(name for section, name in _listed() if section in sections))


def all_names() -> list[str]:
    """Names of all Debian packages in host/packages.txt, each once."""
    return list(dict.fromkeys(name for _, name in _listed()))


def _listed() -> Iterator[tuple[str, str]]:
    """Section and name of each package in host/packages.txt."""
    section = ""
    for line in (ROOT / "host" / "packages.txt").read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        elif name := line.partition("#")[0].strip():
            yield section, name


def skips_packages() -> bool:
    """Whether the user has installed the packages by other means."""
    return os.environ.get("OPJOULE_SKIP_PACKAGES") == "1"


def installed_versions(wanted: Iterable[str]) -> dict[str, str]:
    """Version of each package as dpkg-query gives it now; empty where it is not completely installed."""
    form = "-f=${binary:Package} ${db:Status-Status} ${Version}\n"
    wanted = sorted(wanted)
    query = subprocess.run(["dpkg-query", "-W", form, *wanted], capture_output=True, text=True, check=False)
    rows = [line.split() for line in query.stdout.splitlines()]
    there = {row[0].split(":")[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed"}
    return {name: there.get(name, "") for name in wanted}


def not_installed(wanted: Iterable[str]) -> list[str]:
    """The packages of `wanted` that are not completely installed, according to dpkg."""
    wanted = list(wanted)
    versions = installed_versions(wanted)
    return [name for name in wanted if not versions[name]]


def install_sections(required: Sequence[str], optional: Sequence[str], log: Path) -> dict[str, str]:
    """Installs the missing Debian packages of these sections with apt-get, through sudo if needed.

    Returns: section -> why its packages cannot be installed, for optional sections only.
    Raises: SetupError: apt-get failed. Lasting: there is no apt-get, no network, or neither root permission nor sudo.
    """
    try:
        install_named(names(*required, *optional), log)
    except Lasting:
        raise
    except SetupError:
        if not optional:
            raise
        install_named(names(*required), log)
    else:
        return {}
    failed = {}
    for section in optional:
        try:
            install_named(names(section), log)
        except Lasting:
            raise
        except SetupError:
            failed[section] = f"apt-get cannot install {' '.join(not_installed(names(section)))} (see {log})"
    return failed


def are_of_system(wanted: Iterable[str]) -> bool:
    """True on a system that has these without Debian's packages: venv is in its Python, and ssh is for boards alone."""
    return bool(this_computer.without_packages()) and set(wanted) <= set(names("host"))


def install_named(wanted: Sequence[str], log: Path) -> None:
    """Installs those of the named packages that are missing. Raises: SetupError: as install_sections()."""
    if skips_packages():
        return
    if reason := this_computer.without_packages():
        if are_of_system(wanted):
            return
        raise Lasting(reason)
    missing = not_installed(wanted)
    if not missing:
        return
    for remark in this_computer.remarks():
        say(f"    {remark}")
    say(f"    {len(missing)} to install: {' '.join(missing)}")
    prefix: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            command = "apt-get install --no-install-recommends " + " ".join(missing)
            raise Lasting(f"System packages are missing, and there is no sudo: as root run {command}")
        prefix = ["sudo"]
    prefix += ["env", "DEBIAN_FRONTEND=noninteractive"]
    options = (f"-oDPkg::Lock::Timeout={LOCK_LIMIT_S}", "-oAcquire::Retries::Delay=false", "-q")
    apt = [*prefix, "apt-get", *options]
    install = [*apt, "install", "-y", "--no-install-recommends", *missing]
    logged([*apt, "update"], log)
    try:
        logged(install, log)
    except Lasting:
        raise
    except SetupError:  # also after an earlier installation that was interrupted
        logged([*prefix, "dpkg", "--configure", "-a"], log)
        logged(install, log)
