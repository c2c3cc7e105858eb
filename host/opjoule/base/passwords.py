"""Passwords in a user's text: refused if they would be kept or shown, masked if a program has printed them.

Recognised are the password of an address (RFC 3986, 3.2.1: scheme://user:password@host), a setting called password,
passwd, pwd, passphrase, secret, api_key or access_token, and an option with such a name followed by its value.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from opjoule.base.errors import BadInput

MASK: Final = "***"
_NAME: Final = r"[\w.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?(?:key|token))|\bpwd|\w*[._]pass"
_VALUE: Final = r"""(?:"[^"]*"|'[^']*'|\{[^}]*\}|[^;\n'"]+(?=;)|[^\s;&,'"]+)"""
_PATTERNS: Final = (
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)(?P<word>[^\s/'\"]+)(?=@)", re.IGNORECASE),
    re.compile(rf"(?P<kept>(?:{_NAME})(?:[\"']\s*:|\s*=)\s*)(?P<word>{_VALUE})", re.IGNORECASE),
    re.compile(rf"(?P<kept>--(?:{_NAME})\s+)(?P<word>[^\s-]\S*)", re.IGNORECASE),
)
_HINT: Final = re.compile(r"://|pass|pwd|secret|api|access", re.IGNORECASE)
"""Quick test: texts without any of these are not searched further."""


def masked(text: str) -> str:
    """The text with *** in place of each password."""
    if not _HINT.search(text):
        return text
    for pattern in _PATTERNS:
        text = pattern.sub(lambda match: match["kept"] + _shown(match["word"]), text)
    return text


def all_masked(value: Any) -> Any:
    """A JSON value with every text in it masked."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {key: MASK if _is_password(key, entry) else all_masked(entry) for key, entry in value.items()}
    return [all_masked(entry) for entry in value] if isinstance(value, list) else value


def refuse_passwords(words: Iterable[str], where: str) -> None:
    """Refuses passwords that the record would keep and `ps` would show.

    `where`: place of the words, for the message. Raises: BadInput: they contain a password.
    """
    if masked(text := " ".join(words)) != text:
        raise BadInput(
            f"{where} contains a password, which the record would keep and 'ps' would show to everybody: let the "
            "program read it from a file of yours on the board (passfile=, ~/.pgpass, ~/.netrc); for a study, use "
            "--connections"
        )


def _is_password(key: object, entry: object) -> bool:
    are_texts = isinstance(key, str) and isinstance(entry, str)
    return bool(are_texts and entry and re.fullmatch(_NAME, str(key), re.IGNORECASE))


def _shown(word: str) -> str:
    """*** for a password; placeholders, shell variables and folders (PWD=/tmp) are no passwords and stay."""
    return word if word.startswith(("$", "{", "/", "<")) or word.strip("*") == "" else MASK
