"""Connections through ODBC: the module, the drivers, and their errors in one line each."""

import urllib.parse

from opjoule_study import Unmeasurable

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
