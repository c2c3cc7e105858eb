"""What tells of the measuring computer in a record: taken out of its texts before it is given to others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

_PATH: Final = re.compile(r"(?<![\w.:/~+-])/(?:[^\s/\"'<>|,;:=\\]+/)+([^\s/\"'<>|,;:=\\]*)")
"""An absolute path of at least one folder; its last part is kept."""
_REMOTE: Final = re.compile(r"\bssh:[^\s\"',;]+")
_ADDRESS: Final = re.compile(r"\b[A-Za-z_][\w.-]*@[A-Za-z0-9][\w.-]*\b")
_KEPT: Final = ("/dev/null", "/proc/", "/sys/")
"""Beginnings of paths that are the same on every computer."""


@dataclass(frozen=True)
class Redaction:
    """Replaces paths by their last part, and names of this computer and its user by what they are."""

    host: str
    user: str

    def text(self, text: str) -> str:
        """A text without them."""
        plain = _PATH.sub(
            lambda match: match[0] if match[0].startswith(_KEPT) else match[1] or "folder", text
        )
        plain = _ADDRESS.sub("user@host", _REMOTE.sub("ssh", plain))
        for name, words in ((self.host, "host"), (self.user, "user")):
            if len(name) > 2 and name not in ("root", "localhost"):
                plain = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", words, plain)
        return plain

    def value(self, value: Any) -> Any:
        """A JSON value, all of its texts without them; keys stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.value(entry) for entry in value]
        return value


class KeptNames(Redaction):
    """Leaves everything as it is: the user has asked for it."""

    def __init__(self) -> None:
        super().__init__("", "")

    def text(self, text: str) -> str:
        """The text."""
        return text
