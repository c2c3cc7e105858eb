"""The contents of messages.toml, with the size of each message."""

import tomllib
from pathlib import Path
from typing import Any

SIZES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8}
"""Wire type -> bytes."""

Definition = dict[str, Any]
"""A table of messages.toml."""


class Field:
    """One field of a message: name, wire type, meaning, and number of values."""

    def __init__(self, entry: list[Any]) -> None:
        self.name, self.wire, self.about = entry[:3]
        self.count = entry[3] if len(entry) > 3 else 1
        self.size = SIZES[self.wire] * self.count


def camel(name: str) -> str:
    """ClassName for message_name."""
    return "".join(part.capitalize() for part in name.split("_"))


def class_name(message: Definition) -> str:
    """Name of a message's struct or class. The fault message has a suffix because an enum has the same name."""
    return camel(message["name"]) + ("Message" if message["name"] == "fault" else "")


def load(path: Path) -> Definition:
    """Reads the definition, with lists of Field for fields and items, and with the sizes in bytes."""
    definition = tomllib.loads(path.read_text())
    for message in definition["message"]:
        message["fields"] = [Field(entry) for entry in message["fields"]]
        message["items"] = [Field(entry) for entry in message.get("items", [])]
        message["bytes"] = sum(field.size for field in message["fields"])
        message["item_bytes"] = sum(field.size for field in message["items"])
    types = [message["type"] for message in definition["message"]]
    assert len(types) == len(set(types)), "two messages have the same type"
    return definition
