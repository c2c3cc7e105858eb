"""This computer's own network settings, which a fresh root needs to reach package mirrors: nothing else is passed on.

Uses only the standard library.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
"""Variables that name a bundle of certificates."""
_INDEXES: Final = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_PROXY", "PIP_DEFAULT_TIMEOUT"),
    *("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_NATIVE_TLS", "UV_HTTP_TIMEOUT"),
)
VARIABLES: Final = (*_PROXIES, *(name.upper() for name in _PROXIES), *_CERTIFICATES, *_INDEXES)
_OF_HOME: Final = (".m2/settings.xml", ".m2/settings-security.xml", ".config/pip/pip.conf", ".pip/pip.conf")
_OF_COMPUTER: Final = ("/etc/resolv.conf", "/etc/pip.conf")
_OWN_AUTHORITIES: Final = "/usr/local/share/ca-certificates"
"""Folder of the certificates that Debian's update-ca-certificates adds to every bundle, Java's included."""
_APT_BUNDLE: Final = "::cainfo"
APT_FILE: Final = "etc/apt/apt.conf.d/90network"


@dataclass(frozen=True)
class NetworkSettings:
    """How this computer reaches the network."""

    variables: dict[str, str]
    """Of the environment: proxies, certificates, package indexes."""
    files: tuple[Path, ...]
    """Each has the same path in a root."""
    home_files: tuple[tuple[Path, str], ...]
    """Files of the user's home folder, each with its path below it."""
    apt: tuple[str, ...]
    """Lines of apt's configuration."""

    def write(self, root: Path, home: str) -> None:
        """Copies the files into a root. `home`: path of its user's home folder in the root."""
        copies = [(path, root / str(path).lstrip("/")) for path in self.files]
        copies += [(path, root / home.lstrip("/") / below) for path, below in self.home_files]
        for source, target in copies:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copyfile(source, target)
        if self.apt:
            (root / APT_FILE).parent.mkdir(parents=True, exist_ok=True)
            (root / APT_FILE).write_text("".join(f"{line}\n" for line in self.apt))


def network_settings(
    environment: Mapping[str, str] = os.environ, home: Path | None = None, computer: Path = Path("/")
) -> NetworkSettings:
    """The settings of this computer, and of the user who called sudo.

    Args:
        home: the user's home folder; None: that of the user who called sudo, or of this one.
        computer: this computer's root folder.
    """
    variables = {name: environment[name] for name in VARIABLES if name in environment}
    apt = apt_lines(_apt_configuration())
    named = [
        *(variables[name] for name in _CERTIFICATES if name in variables),
        *(line.split('"')[1] for line in apt if _APT_BUNDLE in line.lower()),
        *_OF_COMPUTER,
        *map(str, sorted((computer / _OWN_AUTHORITIES.lstrip("/")).glob("*.crt"))),
    ]
    files = dict.fromkeys(Path(name) for name in named if Path(name).is_file())
    home = home or _users_home(environment)
    of_home = tuple((home / name, name) for name in _OF_HOME if (home / name).is_file())
    return NetworkSettings(variables, tuple(files), of_home, apt)


def apt_lines(dump: str) -> tuple[str, ...]:
    """The lines of `apt-config dump` that say how packages are fetched: proxies and certificates."""
    wanted = ("::proxy", _APT_BUNDLE, "::timeout")
    lines = (line.strip() for line in dump.splitlines())
    return tuple(
        line
        for line in lines
        if line.startswith("Acquire::")
        and any(word in line.split()[0].lower() for word in wanted)
        and not line.endswith(' "";')
    )


def _apt_configuration() -> str:
    if not shutil.which("apt-config"):
        return ""
    return subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False).stdout


def _users_home(environment: Mapping[str, str]) -> Path:
    try:
        return Path(pwd.getpwnam(environment["SUDO_USER"]).pw_dir)
    except KeyError:
        return Path.home()
