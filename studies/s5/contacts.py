"""The table of contacts: its rows are drawn from a seed; each filter finds the rows marked for it."""

import hashlib
import random
from typing import NamedTuple

STATE, NEW_STATE = "QA", "QB"
"""State of the rows that are found by state, and the state that T4B writes; neither is a real state."""
ZIP, NEW_ZIP = "00000-0000", "99999-9999"
"""Zip of the rows that are found by zip, and the zip that T4A writes."""
_STATES = (
    *("AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA"),
    *("HI", "ID", "IL", "IN", "IA", "KS", "KY", "LA", "ME", "MD"),
)
_LETTERS = "abcdefghijklmnoprstuvw"


class Contact(NamedTuple):
    """One row."""

    id: int
    lastname: str
    firstname: str
    street: str
    city: str
    state: str
    zip: str
    country: str
    phone: str


WIDTHS = {
    "lastname": 25,
    "firstname": 25,
    "street": 30,
    "city": 30,
    "state": 2,
    "zip": 10,
    "country": 20,
    "phone": 13,
}
"""Column -> maximum number of characters of its values."""


def drawn(rows, by_state, by_zip, seed):
    """SYNTHETIC contacts, in the order of their ids.

    Args:
        rows: number of contacts.
        by_state, by_zip: number of rows that each of the two filters finds; no row is found by both, so that one
            test does not change the rows of another.
        seed: seed of all values.
    """
    values = random.Random(f"contacts {seed}")
    marks = ["state"] * by_state + ["zip"] * by_zip + [""] * (rows - by_state - by_zip)
    values.shuffle(marks)
    return [_contact(number, mark, values) for number, mark in enumerate(marks, 1)]


def _contact(number, mark, values):
    def word(least, most):
        return "".join(values.choices(_LETTERS, k=values.randint(least, most))).capitalize()

    street = f"{values.randint(1, 9999)} {word(5, 14)} Street"
    state = STATE if mark == "state" else values.choice(_STATES)
    place = ZIP if mark == "zip" else f"{values.randint(10_000, 99_998)}"
    phone = f"{values.randint(200, 999)}-{values.randint(200, 999)}-{values.randint(0, 9999):04}"
    return Contact(number, word(4, 12), word(3, 10), street, word(4, 14), state, place, "USA", phone)


def digest(rows):
    """Digest of some rows, twelve hexadecimal digits, independent of the rows' order."""
    return hashlib.sha256(repr(sorted(map(tuple, rows))).encode()).hexdigest()[:12]
