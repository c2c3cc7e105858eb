"""The table of contacts in SQL: in SQLite through Python's own module, and in anything that ODBC reaches."""

import os
import sqlite3

import odbc
from contacts import WIDTHS
from opjoule_study import emptied

TABLE = "opjoule_contacts"
"""Nobody else's: on a server of the user's it is replaced, and dropped in the end."""
_COLUMNS = ", ".join(
    ["id INTEGER NOT NULL PRIMARY KEY", *(f"{name} VARCHAR({n})" for name, n in WIDTHS.items())]
)
CREATE = f"CREATE TABLE {TABLE} ({_COLUMNS})"
INDEX = f"CREATE INDEX opjoule_state ON {TABLE} (state)"
DROP = f"DROP TABLE {TABLE}"
INSERT = f"INSERT INTO {TABLE} VALUES ({', '.join('?' * (len(WIDTHS) + 1))})"
STORE = f"UPDATE {TABLE} SET {', '.join(f'{name} = ?' for name in WIDTHS)} WHERE id = ?"
REMOVE = f"DELETE FROM {TABLE} WHERE id = ?"
ROW = f"SELECT * FROM {TABLE} WHERE id = ?"
ALL = f"SELECT * FROM {TABLE} ORDER BY id"
FOUND = {column: f"FROM {TABLE} WHERE {column} = ?" for column in ("state", "zip")}
"""By the column that rows are found by."""


class SqlTable:
    """What they have in common: _execute(), _executemany(), and a transaction for each statement outside of begin()."""

    def insert(self, contact):
        """One row, one transaction."""
        self._execute(INSERT, contact)

    def insert_all(self, contacts):
        """Rows in one transaction."""
        self._together(INSERT, contacts)

    def select(self, column, value):
        """Rows whose column has a value."""
        return self._all(f"SELECT * {FOUND[column]}", value)

    def ids(self, column, value):
        """Their ids."""
        return [row[0] for row in self._all(f"SELECT id {FOUND[column]}", value)]

    def row(self, number):
        """One row, by its id."""
        return self._all(ROW, number)[0]

    def everything(self):
        """All rows, by id."""
        return self._all(ALL)

    def update_each(self, column, value, target, written, after):
        """Each row that is found in a transaction of its own, by its id; then after(id)."""
        statement = f"UPDATE {TABLE} SET {target} = ? WHERE id = ?"
        for number in self.ids(column, value):
            self._execute(statement, (written, number))
            after(number)

    def update_all(self, column, value, target, written):
        """All of them by one statement."""
        self._execute(f"UPDATE {TABLE} SET {target} = ? WHERE {column} = ?", (written, value))

    def delete_each(self, column, value, after):
        """As update_each()."""
        for number in self.ids(column, value):
            self._execute(REMOVE, (number,))
            after(number)

    def delete_all(self, column, value):
        """All of them by one statement."""
        self._execute(f"DELETE {FOUND[column]}", (value,))

    def store(self, contact):
        """A row whole, in place of the one of its id."""
        self._execute(STORE, (*contact[1:], contact[0]))

    def store_all(self, contacts):
        """Rows in one transaction."""
        self._together(STORE, [(*contact[1:], contact[0]) for contact in contacts])

    def remove(self, number):
        """A row, by its id."""
        self._execute(REMOVE, (number,))

    def remove_all(self, numbers):
        """Rows in one transaction."""
        self._together(REMOVE, [(number,) for number in numbers])

    def close(self):
        """The connection is closed."""
        self._connection.close()

    def _all(self, statement, *values):
        return self._execute(statement, values).fetchall()


class SqliteTable(SqlTable):
    """Through Python's own module, with the settings that it is delivered with."""

    def __init__(self, folder):
        self.version = f"SQLite {sqlite3.sqlite_version}"
        self._folder, self._file = folder, os.path.join(folder, "contacts.sqlite")

    def create(self):
        """A new database with an empty table, which nobody has open."""
        emptied(self._folder)
        self.open()
        self._execute(CREATE)
        self._execute(INDEX)
        self.close()

    def open(self):
        """One connection."""
        self._connection = sqlite3.connect(self._file, isolation_level=None)
        self._execute = self._connection.execute

    def drop(self):
        """Its folder is removed with the measurement's."""

    def _together(self, statement, rows):
        self._execute("BEGIN")
        self._connection.executemany(statement, rows)
        self._execute("COMMIT")


class OdbcTable(SqlTable):
    """Whatever a connection string leads to."""

    def __init__(self, name, string, first=()):
        """Sees that it can be reached.

        Args:
            name: of the system or server.
            first: statements of each new connection.
        Raises: Unmeasurable: it cannot.
        """
        self._name, self._string, self._first = name, string, first
        connection = odbc.connect(name, string)
        self.version = odbc.about(connection)
        connection.close()

    def create(self):
        """An empty table in place of the former, which nobody has open."""
        self.open()
        self._drop()
        self._execute(CREATE)
        self._execute(INDEX)
        self.close()

    def open(self):
        """One connection."""
        self._connection = odbc.connect(self._name, self._string)
        self._cursor = self._connection.cursor()
        self._execute = self._cursor.execute
        for statement in self._first:
            self._execute(statement)

    def drop(self):
        """No table is left behind."""
        self.open()
        self._drop()
        self.close()

    def _drop(self):
        if self._cursor.tables(table=TABLE).fetchone():
            self._execute(DROP)

    def _together(self, statement, rows):
        if not rows:
            return
        self._connection.autocommit = False
        self._cursor.executemany(statement, [tuple(row) for row in rows])
        self._connection.commit()
        self._connection.autocommit = True


class SqliteOdbcTable(OdbcTable):
    """SQLite's ODBC driver on a file of the measured medium."""

    DEFAULT = "Driver=SQLite3;Database={file}"

    def __init__(self, folder, string):
        self._folder = emptied(folder)
        super().__init__("sqlite-odbc", string.replace("{file}", os.path.join(folder, "contacts.sqlite")))
        self.open()  # the driver names the SQLite that it was compiled with
        version = self._all("SELECT sqlite_version()")[0][0]
        self.version = f"SQLite {version} through {self.version.partition(' through ')[2]}"
        self.close()

    def create(self):
        """A new file."""
        emptied(self._folder)
        super().create()
