"""PostgreSQL: a server that is already running, through psycopg 3."""

from functools import cache

from opjoule_study import Unmeasurable, one_line
from sql_systems import SqlSystem

OLDEST_SERVER, OLDEST_CLIENT = 12, (3, 1)


def client():
    """The module psycopg. Raises: Unmeasurable: it is missing, or too old."""
    try:
        import psycopg
    except ImportError as error:
        raise Unmeasurable(f"PostgreSQL's Python client is missing ({error}): pip install 'psycopg[binary]'") from None
    version = tuple(int(part) for part in psycopg.__version__.split(".")[:2])
    if version < OLDEST_CLIENT:
        oldest = ".".join(map(str, OLDEST_CLIENT))
        raise Unmeasurable(f"psycopg {psycopg.__version__} is too old: pip install 'psycopg[binary]>={oldest}'")
    return psycopg


@cache
def _spelled(sql):
    """The shared SQL with psycopg's placeholder for values; converted once for each statement."""
    return sql.replace("%", "%%").replace("?", "%s")


class Postgresql(SqlSystem):
    """One database of a server."""

    def __init__(self, address):
        """Checks that the server answers and is new enough.

        Args:
            address: in libpq's form, postgresql://USER@HOST:PORT/DATABASE?...
        Raises: Unmeasurable: it does not answer (in libpq's own words), or is too old.
        """
        if not address:
            raise Unmeasurable("--server is missing: the address of a running PostgreSQL, postgresql://...")
        self._connect = lambda: client().connect(address, autocommit=True)
        try:
            with client().connect(address, connect_timeout=10) as connection:
                version = connection.info.server_version
        except client().Error as error:
            raise Unmeasurable(f"PostgreSQL does not accept this client: {one_line(error)}") from None
        if version < OLDEST_SERVER * 10_000:
            raise Unmeasurable(f"PostgreSQL {OLDEST_SERVER} or later is needed, but this is {version // 10_000}")
        self.version = f"{version // 10_000}.{version % 10_000}"

    def create(self):
        """Replaces the table by an empty one. A commit waits for the log, as in PostgreSQL's default settings."""
        self._connection = self._connect()
        self._cursor = self._connection.cursor()
        self._execute("SET synchronous_commit TO on")
        self._execute("DROP TABLE IF EXISTS readings")
        self._execute(self.time_sql.table())

    def _execute(self, sql, values=()):
        return self._cursor.execute(_spelled(sql), values)

    def load(self, path):
        """Loads the rows of a CSV file, which are sent to the server unchanged."""
        with self._cursor.copy("COPY readings FROM STDIN (FORMAT csv)") as copy, open(path, "rb") as lines:
            for block in iter(lambda: lines.read(1 << 16), b""):
                copy.write(block)
