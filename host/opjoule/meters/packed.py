"""Common base of all messages between a meter and the host: packing and unpacking of their fields."""

import re
import struct
from dataclasses import dataclass, fields
from itertools import chain, islice
from typing import Any, ClassVar, Self

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A message: its fields in order, then its `items` as numpy records, if it has any."""

    TYPE: ClassVar[int]
    FIELDS: ClassVar[struct.Struct]
    COUNTS: ClassVar[list[int]]
    """Number of values of each field before the items."""
    ITEM: ClassVar[np.dtype[np.void]]

    def __init_subclass__(cls, kind: int | None = None, form: str = "", item: str = "") -> None:
        """`kind`: type of the message; `form`: format of its fields; `item`: "NAME FORMAT, ..." of its items."""
        if kind is None:
            return  # dataclass() creates a class with slots a second time, from its attributes
        cls.TYPE, cls.FIELDS = kind, struct.Struct(f"<{form}")
        cls.COUNTS = [int(count or 1) for count, _ in re.findall(r"(\d*)([A-Za-z])", form)]
        if item:
            parts: list[Any] = [tuple(part.split(" ")) for part in item.split(", ")]
            cls.ITEM = np.dtype(parts)

    def pack(self) -> bytes:
        """The fields as they are sent, without type, seq and CRC."""
        values = [getattr(self, field.name) for field in fields(self)]
        items = values.pop().astype(self.ITEM).tobytes() if hasattr(self, "ITEM") else b""
        flat = chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in values)
        return self.FIELDS.pack(*flat) + items

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """The message in `body` (fields only). Raises: ValueError: wrong length for this message."""
        fixed, rest = body[: cls.FIELDS.size], body[cls.FIELDS.size :]
        item = getattr(cls, "ITEM", None)
        if len(fixed) < cls.FIELDS.size or (rest if item is None else len(rest) % item.itemsize):
            raise ValueError(f"{cls.__name__}: a body of {len(body)} bytes")
        left = iter(cls.FIELDS.unpack(fixed))
        values: list[Any] = [next(left) if count == 1 else tuple(islice(left, count)) for count in cls.COUNTS]
        return cls(*values, *([] if item is None else [np.frombuffer(rest, dtype=item)]))
