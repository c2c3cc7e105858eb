"""The messages as a Python module."""

import re
import textwrap

from layout import SIZES, Definition, Field, camel, class_name

STRUCT_CODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q"}
"""Wire type -> code of Python's struct."""


def _wrapped(text: str, indent: str) -> str:
    """A docstring of one or more lines."""
    if len(text) + len(indent) <= 102:
        return f'{indent}"""{text}"""'
    body = textwrap.fill(text, 106, initial_indent=indent + '"""', subsequent_indent=indent)
    return f'{body}\n{indent}"""'


def _enum(enum: Definition) -> list[str]:
    # The bits of a frame and of the reset register are flags; all other enumerations are numbers.
    base = "IntFlag" if enum["name"] in ("flag", "reset_cause") else "IntEnum"
    out = [f"class {camel(enum['name'])}({base}):", _wrapped(enum["about"], "    "), ""]
    for name, value, about in enum["values"]:
        out += [f"    {name.upper()} = {value}", _wrapped(about, "    ")]
    return [*out, "", ""]


def _format(fields: list[Field]) -> str:
    return "".join((str(field.count) if field.count > 1 else "") + STRUCT_CODES[field.wire] for field in fields)


def _members(fields: list[Field]) -> list[str]:
    out = []
    for field in fields:
        out += [
            f"    {field.name}: {'tuple[int, ...]' if field.count > 1 else 'int'}",
            _wrapped(field.about, "    "),
        ]
    return out


def _message(message: Definition) -> list[str]:
    fields, items = message["fields"], message["items"]
    name = class_name(message)
    traits = f"Packed, kind=0x{message['type']:02X}"
    traits += f', form="{_format(fields)}"' if fields else ""
    if items:
        entries = ", ".join(f"{field.name} <{field.wire[0]}{SIZES[field.wire]}" for field in items)
        traits += f', item="{entries}"'
    head = f"class {name}({traits}):"
    out = [
        f"@dataclass(frozen=True, slots=True{', eq=False' if items else ''})",
        head if len(head) <= 110 else f"class {name}(\n    {traits}\n):",
        _wrapped(message["about"], "    "),
    ]
    out += ["", *_members(fields)] if fields else []
    if items:
        out += [
            "    items: NDArray[np.void]",
            _wrapped("; ".join(f"{f.name}: {f.about}" for f in items), "    "),
        ]
    return [*out, "", ""]


def python_messages(definition: Definition, notice: str) -> str:
    """Text of messages.py: enumerations and dataclasses, with items as numpy records."""
    protocol = definition["protocol"]
    out = [
        '"""The messages between a meter and the host, both ways.',
        "",
        f"{notice}",
        '"""',
        "",
        "from dataclasses import dataclass",
        "from enum import IntEnum, IntFlag",
        "from typing import get_args",
        "",
        "import numpy as np",
        "from numpy.typing import NDArray",
        "",
        "from opjoule.meters.packed import Packed",
        "",
        f"VERSION = {protocol['version']}",
        f"BAUD = {protocol['baud']}",
        f"TICK_HZ = {protocol['tick_hz']}",
        f"MAX_FRAME_BYTES = {protocol['max_frame_bytes']}",
        '"""Type to CRC, before COBS."""',
        "",
        "",
    ]
    for enum in definition["enum"]:
        out += _enum(enum)
    for message in definition["message"]:
        out += _message(message)
    names = [class_name(m) for m in definition["message"]]
    out += [
        "Message = (",
        f"    {names[0]}",
        *(f"    | {name}" for name in names[1:]),
        ")",
        "",
        "BY_TYPE: dict[int, type[Message]] = {message.TYPE: message for message in get_args(Message)}",
        "",
    ]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(out))
