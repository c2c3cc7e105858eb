"""PostgreSQL: a server that somebody else has started, through psycopg 3."""

from functools import cache

from opjoule_study import Unmeasurable, one_line
from sql_systems import SqlSystem

OLDEST_SERVER, OLDEST_CLIENT = 12, (3, 1)


def client():
    """The module psycopg. Raises: Unmeasurable: it is not there, or too old."""
    try:
        import psycopg
    except ImportError as error:
        raise Unmeasurable(
            f"PostgreSQL's Python client is not there ({error}): pip install 'psycopg[binary]'"
        ) from None
    version = tuple(int(part) for part in psycopg.__version__.split(".")[:2])
    if version < OLDEST_CLIENT:
        oldest = ".".join(map(str, OLDEST_CLIENT))
        raise Unmeasurable(
            f"psycopg {psycopg.__version__} is too old: pip install 'psycopg[binary]>={oldest}'"
        )
    return psycopg


@cache
def _spelled(sql):
    """The shared SQL with psycopg's sign for a value, written once for each statement."""
    return sql.replace("%", "%%").replace("?", "%s")


class Postgresql(SqlSystem):
    """One database of a server."""

    def __init__(self, address):
        """Sees that the server answers and is new enough.

        Args:
            address: as libpq takes it: postgresql://USER@HOST:PORT/DATABASE?...
        Raises: Unmeasurable: it does not; in libpq's own words.
        """
        if not address:
            raise Unmeasurable("--server is missing: the address of a running PostgreSQL, postgresql://...")
        self._connect = lambda: client().connect(address, autocommit=True)
        try:
            with client().connect(address, connect_timeout=10) as connection:
                version = connection.info.server_version
        except client().Error as error:
            raise Unmeasurable(f"PostgreSQL does not take this client: {one_line(error)}") from None
        if version < OLDEST_SERVER * 10_000:
            raise Unmeasurable(
                f"PostgreSQL {OLDEST_SERVER} or later is needed, and this is {version // 10_000}"
            )
        self.version = f"{version // 10_000}.{version % 10_000}"

    def create(self):
        """An empty table in place of the former; a commit waits for the log, as in a server that is delivered."""
        self._connection = self._connect()
        self._cursor = self._connection.cursor()
        self._execute("SET synchronous_commit TO on")
        self._execute("DROP TABLE IF EXISTS readings")
        self._execute(self.time_sql.table())

    def _execute(self, sql, values=()):
        return self._cursor.execute(_spelled(sql), values)

    def load(self, path):
        """The rows of a CSV file, sent to the server as they are."""
        with self._cursor.copy("COPY readings FROM STDIN (FORMAT csv)") as copy, open(path, "rb") as lines:
            for block in iter(lambda: lines.read(1 << 16), b""):
                copy.write(block)
