"""The study's tests, by one definition each for all systems; and what plain Python leaves of the table after each."""

from contacts import NEW_STATE, NEW_ZIP, STATE, ZIP, drawn

PROGRESS_EVERY = 64
"""Rows between two words about how far a test is."""


class AskedRows:
    """What is asked of every system: of one seed and one set of counts the same."""

    def __init__(self, opens, rows, by_state, by_zip, seed, *, batch):
        """Args: batch: the rows of a test in one transaction, in place of one for each."""
        self.opens, self.by_state, self.by_zip, self.batch = opens, by_state, by_zip, batch
        self.contacts = drawn(rows, by_state, by_zip, seed)
        self.rows = rows
        self._expect()

    def _expect(self):
        """Test -> the rows that it finds or leaves, by plain Python."""
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
        """Rows of a test; of T1 the connections."""
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
    """What is done after each row's transaction: it is carried to the server, if there is one."""
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
"""In the order in which they run: each finds what those before it have left. A test is given a server, too, to which
each transaction is carried once it is made: the rows are read back, and stored there by one call, a transaction."""
COUNTS = {"T1": "opens", "T2": "rows", "T3A": "by_state", "T3B": "by_zip"}
COUNTS |= {"T4A": "by_state", "T4B": "by_zip", "T5A": "by_state", "T5B": "by_zip"}
LOOPS = ("T1", "T2", "T4A", "T4B", "T5A", "T5B")
"""Tests that Python makes of many calls: their loops are measured without a database as well."""
READS = ("T3A", "T3B")
UNCHANGING = ("T1", *READS)
"""Tests after which the table is as it was before."""


class NoTable:
    """A system that stores nothing: what is left is the harness, a call for each row."""

    def __init__(self, asked):
        self._found = {"state": range(asked.by_state), "zip": range(asked.by_zip)}

    def open(self):
        """Does nothing."""

    close = open

    def insert(self, contact):
        """Stores nothing."""

    def insert_all(self, contacts):
        """A call for each, as Zen needs in a transaction, too."""
        for contact in contacts:
            self.insert(contact)

    def update_each(self, column, value, target, written, after):
        """The loop over the rows that a database would have found."""
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
