"""The table of contacts: its rows, drawn from a seed, with marked ones that each filter finds."""

import hashlib
import random
from typing import NamedTuple

STATE, NEW_STATE = "QA", "QB"
"""What rows that are found by state have there, and what T4B writes: no state has such a name."""
ZIP, NEW_ZIP = "00000-0000", "99999-9999"
"""What rows that are found by zip have there, and what T4A writes."""
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
"""Column -> letters that it holds at most."""


def drawn(rows, by_state, by_zip, seed):
    """SYNTHETIC contacts, in the order of their ids.

    Args:
        rows: how many.
        by_state, by_zip: how many of them the two filters find; no row is found by both, so that what one test
            changes is not what another looks for.
        seed: of all of it.
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
    """Twelve hexadecimal digits of some rows, the same for the same rows in any order."""
    return hashlib.sha256(repr(sorted(map(tuple, rows))).encode()).hexdigest()[:12]
