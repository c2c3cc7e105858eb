"""The table of contacts in SQL: in SQLite through Python's own module, in any database through ODBC and its drivers."""

import os
import sqlite3
import urllib.parse

from opjoule_study import Unmeasurable, emptied
from phases import WIDTHS

CONNECT_LIMIT_S = 10
OLDEST_MODULE = (4, 0, 30)
_MANAGER = ("01000", "IM002", "IM003", "IM004", "IM005")
"""Error codes of the driver manager itself: there is no driver with this name, or it cannot be loaded."""
GETTING = {
    "sqlite-odbc": "apt install libsqliteodbc",
    "postgresql": "apt install odbc-postgresql",
    "zen-odbc": "install Actian Zen's ODBC driver, and name its database in the file of --connections",
    "sqlserver": "install Microsoft's ODBC driver or tdsodbc, and name it in the file of --connections",
}


def module():
    """The module pyodbc. Raises: Unmeasurable: it is missing, cannot be loaded, or is too old."""
    try:
        import pyodbc
    except ImportError as error:
        raise Unmeasurable(
            f"the Python module pyodbc is missing ({error}): apt install unixodbc, and python3-pyodbc "
            "if there is no wheel for the board's Python"
        ) from None
    version = tuple(int(part) for part in pyodbc.version.split(".")[:3] if part.isdigit())
    if version < OLDEST_MODULE:
        oldest = ".".join(map(str, OLDEST_MODULE))
        raise Unmeasurable(f"pyodbc {pyodbc.version} is too old: {oldest} or later is needed")
    pyodbc.pooling = False  # T1 opens and closes connections
    return pyodbc


def connect(name, string):
    """An open connection in which each statement is a transaction of its own.

    Args:
        name: name of the system or server, for messages.
        string: ODBC connection string.
    Raises: Unmeasurable: it cannot be opened; in the driver's own words.
    """
    pyodbc = module()
    try:
        return pyodbc.connect(string, autocommit=True, timeout=CONNECT_LIMIT_S)
    except pyodbc.Error as error:
        raise Unmeasurable(f"{name}: {words(error)}{_remedy(name, error)}") from None


def _remedy(name, error):
    return f": {GETTING[name]}" if error.args and error.args[0] in _MANAGER else ""


def words(error):
    """A driver's error message in one line."""
    message = str(error.args[1] if len(error.args) > 1 else error)
    return " ".join(message.split()).removesuffix("(SQLDriverConnect)").strip()[:300]


def has_driver(name, string):
    """Checks that a driver can be loaded, even if its server does not answer yet.

    Raises: Unmeasurable: it cannot be loaded.
    """
    pyodbc = module()
    try:
        pyodbc.connect(string, autocommit=True, timeout=1).close()
    except pyodbc.Error as error:
        if error.args and error.args[0] in _MANAGER:
            raise Unmeasurable(f"{name}: {words(error)}{_remedy(name, error)}") from None


def about(connection):
    """Product, version and driver, as reported by the connection."""
    pyodbc = module()
    names = (pyodbc.SQL_DBMS_NAME, pyodbc.SQL_DBMS_VER, pyodbc.SQL_DRIVER_NAME, pyodbc.SQL_DRIVER_VER)
    product, version, driver, driver_version = (str(connection.getinfo(name)).strip() for name in names)
    return f"{product} {version} through {driver} {driver_version}"


def postgresql_string(address):
    """Connection string, for Debian's driver, of a server that the rig has started.

    Args:
        address: postgresql://USER@HOST:PORT/DATABASE?passfile=FILE, with the file in libpq's format.
    Raises: Unmeasurable: its password cannot be read.
    """
    parts = urllib.parse.urlsplit(address)
    values = {
        "Driver": "PostgreSQL Unicode",
        "Servername": parts.hostname,
        "Port": parts.port,
        "Database": parts.path.strip("/"),
        "Username": parts.username,
    }
    passfile = urllib.parse.parse_qs(parts.query).get("passfile")
    if passfile:
        try:
            with open(passfile[0], encoding="ascii") as file:
                values["Password"] = file.readline().rstrip("\n").split(":")[-1]
        except OSError:  # --check comes before the server
            pass
    return ";".join(f"{name}={value}" for name, value in values.items())


TABLE = "opjoule_contacts"
"""Name used only by this study: on the user's server, the table is replaced, and dropped at the end."""
_COLUMNS = ", ".join(["id INTEGER NOT NULL PRIMARY KEY", *(f"{name} VARCHAR({n})" for name, n in WIDTHS.items())])
CREATE = f"CREATE TABLE {TABLE} ({_COLUMNS})"
INDEX = f"CREATE INDEX opjoule_state ON {TABLE} (state)"
DROP = f"DROP TABLE {TABLE}"
INSERT = f"INSERT INTO {TABLE} VALUES ({', '.join('?' * (len(WIDTHS) + 1))})"
STORE = f"UPDATE {TABLE} SET {', '.join(f'{name} = ?' for name in WIDTHS)} WHERE id = ?"
REMOVE = f"DELETE FROM {TABLE} WHERE id = ?"
ROW = f"SELECT * FROM {TABLE} WHERE id = ?"
ALL = f"SELECT * FROM {TABLE} ORDER BY id"
FOUND = {column: f"FROM {TABLE} WHERE {column} = ?" for column in ("state", "zip")}
"""Column of the filter -> the end of the statement."""


class SqlTable:
    """Common base: _execute(), _executemany(), and a transaction for each statement outside of begin()."""

    def insert(self, contact):
        """Inserts one row in a transaction of its own."""
        self._execute(INSERT, contact)

    def insert_all(self, contacts):
        """Inserts rows in one transaction."""
        self._together(INSERT, contacts)

    def select(self, column, value):
        """Rows with this value in the column."""
        return self._all(f"SELECT * {FOUND[column]}", value)

    def ids(self, column, value):
        """Ids of the rows with this value in the column."""
        return [row[0] for row in self._all(f"SELECT id {FOUND[column]}", value)]

    def row(self, number):
        """One row, by its id."""
        return self._all(ROW, number)[0]

    def everything(self):
        """All rows, ordered by id."""
        return self._all(ALL)

    def update_each(self, column, value, target, written, after):
        """Updates each row that is found by its id, in a transaction of its own, and then calls after(id)."""
        statement = f"UPDATE {TABLE} SET {target} = ? WHERE id = ?"
        for number in self.ids(column, value):
            self._execute(statement, (written, number))
            after(number)

    def update_all(self, column, value, target, written):
        """Updates all rows that are found with one statement."""
        self._execute(f"UPDATE {TABLE} SET {target} = ? WHERE {column} = ?", (written, value))

    def delete_each(self, column, value, after):
        """Deletes each row that is found, as update_each() updates it."""
        for number in self.ids(column, value):
            self._execute(REMOVE, (number,))
            after(number)

    def delete_all(self, column, value):
        """Deletes all rows that are found with one statement."""
        self._execute(f"DELETE {FOUND[column]}", (value,))

    def store(self, contact):
        """Replaces the row with the same id."""
        self._execute(STORE, (*contact[1:], contact[0]))

    def store_all(self, contacts):
        """Replaces rows in one transaction."""
        self._together(STORE, [(*contact[1:], contact[0]) for contact in contacts])

    def remove(self, number):
        """Removes a row by its id."""
        self._execute(REMOVE, (number,))

    def remove_all(self, numbers):
        """Removes rows in one transaction."""
        self._together(REMOVE, [(number,) for number in numbers])

    def close(self):
        """Closes the connection."""
        self._connection.close()

    def _all(self, statement, *values):
        return self._execute(statement, values).fetchall()


class SqliteTable(SqlTable):
    """SQLite through Python's own module, with its default settings."""

    def __init__(self, folder):
        self.version = f"SQLite {sqlite3.sqlite_version}"
        self._folder, self._file = folder, os.path.join(folder, "contacts.sqlite")

    def create(self):
        """Creates a new database with an empty table, and closes it."""
        emptied(self._folder)
        self.open()
        self._execute(CREATE)
        self._execute(INDEX)
        self.close()

    def open(self):
        """Opens one connection."""
        self._connection = sqlite3.connect(self._file, isolation_level=None)
        self._execute = self._connection.execute

    def drop(self):
        """Does nothing, as its folder is removed with the measurement's."""

    def _together(self, statement, rows):
        self._execute("BEGIN")
        self._connection.executemany(statement, rows)
        self._execute("COMMIT")


class OdbcTable(SqlTable):
    """A table in any database that an ODBC connection string reaches."""

    def __init__(self, name, string, first=()):
        """Checks that the database can be reached.

        Args:
            name: name of the system or server.
            first: first statements of each new connection.
        Raises: Unmeasurable: it cannot be reached.
        """
        self._name, self._string, self._first = name, string, first
        connection = connect(name, string)
        self.version = about(connection)
        connection.close()

    def create(self):
        """Replaces the table by an empty one, and closes the connection."""
        self.open()
        self._drop()
        self._execute(CREATE)
        self._execute(INDEX)
        self.close()

    def open(self):
        """Opens one connection."""
        self._connection = connect(self._name, self._string)
        self._cursor = self._connection.cursor()
        self._execute = self._cursor.execute
        for statement in self._first:
            self._execute(statement)

    def drop(self):
        """Drops the table."""
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
        self.open()  # otherwise the driver reports the version of SQLite with which it was compiled
        version = self._all("SELECT sqlite_version()")[0][0]
        self.version = f"SQLite {version} through {self.version.partition(' through ')[2]}"
        self.close()

    def create(self):
        """Creates a new file."""
        emptied(self._folder)
        super().create()
