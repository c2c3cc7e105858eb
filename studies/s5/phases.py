"""The contacts and the tests on them, with one definition for all systems, and the expected table after each test."""

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


PROGRESS_EVERY = 64
"""Rows between two progress reports of a test."""


class AskedRows:
    """The questions to every system; they depend only on the seed and the counts."""

    def __init__(self, opens, rows, by_state, by_zip, seed, *, batch):
        """Args: batch: True for one transaction for all rows of a test, False for one for each row."""
        self.opens, self.by_state, self.by_zip, self.batch = opens, by_state, by_zip, batch
        self.contacts = drawn(rows, by_state, by_zip, seed)
        self.rows = rows
        self._expect()

    def _expect(self):
        """Sets test -> the rows that it finds or leaves, by plain Python."""
        kept = list(self.contacts)
        self.expected = {"T2": kept}
        self.expected["T3A"] = [row for row in kept if row.state == STATE]
        self.expected["T3B"] = [row for row in kept if row.zip == ZIP]
        kept = [row._replace(zip=NEW_ZIP) if row.state == STATE else row for row in kept]
        self.expected["T4A"] = kept
        kept = [row._replace(state=NEW_STATE) if row.zip == ZIP else row for row in kept]
        self.expected["T4B"] = kept
        kept = [row for row in kept if row.state != STATE]
        self.expected["T5A"] = kept
        self.expected["T5B"] = [row for row in kept if row.zip != ZIP]

    def count(self, test):
        """Number of rows of a test; for T1, of connections."""
        return getattr(self, COUNTS[test])


def _open(system, asked, server, progress):
    for number in range(asked.opens):
        system.open()
        system.close()
        progress(number)


def _insert(system, asked, server, progress):
    if asked.batch:
        system.insert_all(asked.contacts)
        if server:
            server.insert_all(system.everything())
        return
    for contact in asked.contacts:
        system.insert(contact)
        if server:
            server.insert(system.row(contact.id))
        if not contact.id % PROGRESS_EVERY:
            progress(contact.id)


def _select(column, value):
    return lambda system, asked, server, progress: system.select(column, value)


def _update(column, value, target, written):
    def update(system, asked, server, progress):
        if asked.batch:
            system.update_all(column, value, target, written)
            if server:
                server.store_all(system.select(column, value))
        else:
            carry = (lambda number: server.store(system.row(number))) if server else None
            system.update_each(column, value, target, written, _after(carry, progress))

    return update


def _delete(column, value):
    def delete(system, asked, server, progress):
        if asked.batch:
            ids = system.ids(column, value) if server else ()
            system.delete_all(column, value)
            if server:
                server.remove_all(ids)
        else:
            system.delete_each(column, value, _after(server.remove if server else None, progress))

    return delete


def _after(carry, progress):
    """Function called after each row's transaction, which carries the row to the server, if there is one."""
    done = 0

    def after(number):
        nonlocal done
        if carry:
            carry(number)
        done += 1
        if not done % PROGRESS_EVERY:
            progress(done)

    return after


TESTS = {
    "T1": _open,
    "T2": _insert,
    "T3A": _select("state", STATE),
    "T3B": _select("zip", ZIP),
    "T4A": _update("state", STATE, "zip", NEW_ZIP),
    "T4B": _update("zip", ZIP, "state", NEW_STATE),
    "T5A": _delete("state", STATE),
    "T5B": _delete("zip", ZIP),
}
"""Tests in the order in which they run; each one works on the rows left by the earlier ones. If a test is given a
server, each finished transaction is carried to it: the rows are read back and stored there in one transaction."""
COUNTS = {"T1": "opens", "T2": "rows", "T3A": "by_state", "T3B": "by_zip"}
COUNTS |= {"T4A": "by_state", "T4B": "by_zip", "T5A": "by_state", "T5B": "by_zip"}
LOOPS = ("T1", "T2", "T4A", "T4B", "T5A", "T5B")
"""Tests in which Python makes many calls; their loops are also measured without a database."""
READS = ("T3A", "T3B")
UNCHANGING = ("T1", *READS)
"""Tests that do not change the table."""


class NoTable:
    """A system that stores nothing, so that only the harness is measured: a call for each row."""

    def __init__(self, asked):
        self._found = {"state": range(asked.by_state), "zip": range(asked.by_zip)}

    def open(self):
        """Does nothing."""

    close = open

    def insert(self, contact):
        """Stores nothing."""

    def insert_all(self, contacts):
        """Makes a call for each row, which Zen also needs within a transaction."""
        for contact in contacts:
            self.insert(contact)

    def update_each(self, column, value, target, written, after):
        """Loops over the rows that a database would find."""
        for number in self._found[column]:
            after(number)

    def update_all(self, column, value, target, written):
        """As update_each()."""
        self.update_each(column, value, target, written, lambda number: None)

    def delete_each(self, column, value, after):
        """As update_each()."""
        self.update_each(column, value, "", "", after)

    def delete_all(self, column, value):
        """As update_each()."""
        self.update_all(column, value, "", "")
