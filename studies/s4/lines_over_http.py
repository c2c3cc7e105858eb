"""InfluxDB and QuestDB over HTTP: line protocol in, CSV out. Uses only Python's own modules."""

import csv
import datetime
import io
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request

from queries import THRESHOLD

LIMIT_S = 3600
SEEN_LIMIT_S = 600
"""Longest time until the last point can be read after it was sent."""


def batch(points):
    """Body of a request with some points, one line each."""
    return "".join(
        [f"readings,field={field},sensor={sensor} value={value!r} {at_ms}\n" for at_ms, value, field, sensor in points]
    ).encode()


class _OverHttp:
    """Common base of both."""

    def __init__(self, address):
        self._address = address
        self._headers = {"Accept": "application/csv", "Content-Type": "text/plain; charset=utf-8"}

    def _ask(self, path, body=None, **parameters):
        """The open answer to a request. Raises: OSError: the server refuses; in its own words."""
        url = f"{self._address}{path}?{urllib.parse.urlencode(parameters)}"
        asked = urllib.request.Request(url, data=body, headers=self._headers)
        try:
            return urllib.request.urlopen(asked, timeout=LIMIT_S)
        except urllib.error.HTTPError as error:
            message = " ".join(error.read().decode(errors="replace").split())
            raise OSError(f"HTTP {error.code}: {message[:200]}") from None

    def _rows(self, query):
        """The rows of an answer: (column names, iterator over lists of values)."""
        rows = csv.reader(io.TextIOWrapper(self._query(query), encoding="utf-8", newline=""))
        return next(rows, []), rows

    def _values(self, query):
        """[number, sum] of a query's values. Every column of every row is read."""
        names, rows = self._rows(query)
        if not names:
            return [0, 0.0]
        place, count, total = names.index("value"), 0, 0.0
        for row in rows:
            if row:
                count += 1
                total += float(row[place])
        return [count, total]

    def _points(self, query):
        """(timestamp [ms], value, field, sensor) of a query's rows; rows without a field are temperatures."""
        names, rows = self._rows(query)
        at = {name: names.index(name) for name in names}
        for row in rows:
            if row:
                field = row[at["field"]] if "field" in at else "temperature"
                yield self._ms(row[at[self._time]]), float(row[at["value"]]), field, row[at["sensor"]]

    def _means(self, query, column):
        """Means of temperature and humidity, from rows that name the field."""
        means = {}
        names, rows = self._rows(query)
        for row in rows:
            if row:
                named = " ".join(row)
                field = "temperature" if "temperature" in named else "humidity"
                means[field] = float(row[names.index(column)])
        return [means.get("temperature"), means.get("humidity")]

    def q1(self):
        """Every point."""
        return self._values(self._ALL)

    def q2(self):
        """Warm points."""
        return self._values(self._WARM)

    def q1_rows(self):
        """Every point as (timestamp [ms], value, field, sensor)."""
        return self._points(self._ALL)

    def q2_rows(self):
        """Warm points as (timestamp [ms], value, field, sensor)."""
        return self._points(self._WARM)

    def close(self):
        """Does nothing, as nothing stays open."""


class InfluxDb(_OverHttp):
    """InfluxDB 1.x and 2.x over /write and /query (InfluxQL); 2.x requires a token for both."""

    _time = "time"
    _ALL = 'SELECT "value", "field", "sensor" FROM readings'
    _WARM = f'SELECT "value", "sensor" FROM readings WHERE "field" = \'temperature\' AND "value" > {THRESHOLD}'
    _ms = staticmethod(int)
    """Time in an answer; the request asks for milliseconds."""
    _TOKEN = secrets.token_hex(16)
    """Token of the first user of 2.x; 1.x needs none and ignores it."""

    def __init__(self, address):
        super().__init__(address)
        self._headers["Authorization"] = f"Token {self._TOKEN}"

    def version(self):
        """The server's version. Raises: OSError: it is neither 1.x nor 2.x."""
        with self._ask("/ping") as answer:
            version = answer.headers.get("X-Influxdb-Version", "").lstrip("v")
        if version[:2] not in ("1.", "2."):
            raise OSError(f"InfluxDB {version or 'of unknown version'} is not supported; 1.x and 2.x are")
        return version

    def create(self):
        """Creates an empty database."""
        if self.version().startswith("2."):
            self._set_up()
            return
        with self._ask("/query", body=b"", q="CREATE DATABASE study WITH DURATION INF"):
            pass

    def _set_up(self):
        """2.x: creates the first user, organisation and bucket, and the bucket's name for the interface of 1.x."""
        who = {"username": "opjoule", "password": self._TOKEN, "org": "study", "bucket": "study"}
        made = self._post("/api/v2/setup", {**who, "token": self._TOKEN, "retentionPeriodSeconds": 0})
        names = {"database": "study", "retention_policy": "autogen", "default": True}
        self._post("/api/v2/dbrps", {**names, "bucketID": made["bucket"]["id"], "orgID": made["org"]["id"]})

    def _post(self, path, asked):
        with self._ask(path, body=json.dumps(asked).encode()) as answer:
            return json.load(answer)

    def insert(self, points):
        """Inserts one batch and waits for the acknowledgement."""
        with self._ask("/write", body=batch(points), db="study", precision="ms"):
            pass

    def settle(self, count):
        """Does nothing, as every acknowledged point can be read."""

    def count(self):
        """Number of points."""
        _, rows = self._rows("SELECT count(value) FROM readings")
        return sum(int(row[-1]) for row in rows if row)

    def _query(self, query):
        return self._ask("/query", db="study", q=query, epoch="ms", chunked="true", chunk_size="10000")

    def _rows(self, query):
        """As in the base class; each chunk of an answer begins with the column names again."""
        names, rows = super()._rows(query)
        return names, (row for row in rows if row != names)

    def q3(self):
        """Mean of each field."""
        return self._means('SELECT mean("value") FROM readings GROUP BY "field"', "mean")


class QuestDb(_OverHttp):
    """QuestDB over /write (InfluxDB's line protocol), /exec and /exp."""

    _time = "timestamp"
    _ALL = "SELECT timestamp, value, field, sensor FROM readings"
    _WARM = f"SELECT timestamp, value, sensor FROM readings WHERE field = 'temperature' AND value > {THRESHOLD}"

    @staticmethod
    def _ms(text):
        """Milliseconds of a time in the format of /exp: ISO 8601 with microseconds, UTC."""
        moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
        return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)

    def version(self):
        """The server's version."""
        _, rows = self._rows("SELECT build()")
        return next(rows, [""])[0].replace("Build Information: QuestDB ", "")

    def create(self):
        """Creates an empty table with a partition for each day and a write-ahead log."""
        query = (
            "CREATE TABLE readings (timestamp TIMESTAMP, value DOUBLE, field SYMBOL, sensor SYMBOL) "
            "TIMESTAMP(timestamp) PARTITION BY DAY WAL"
        )
        with self._ask("/exec", query=query) as answer:
            answer.read()

    def _query(self, query):
        return self._ask("/exp", query=query)

    def insert(self, points):
        """Inserts one batch and waits for the acknowledgement."""
        with self._ask("/write", body=batch(points), precision="ms"):
            pass

    def settle(self, count):
        """Waits until the write-ahead log is applied; rows can be read only afterwards."""
        limit_s = time.monotonic() + SEEN_LIMIT_S
        while self.count() < count:
            if time.monotonic() > limit_s:
                raise OSError(
                    f"only {self.count()} of {count} points can be read {SEEN_LIMIT_S} s after they were sent"
                )
            time.sleep(0.05)

    def count(self):
        """Number of points."""
        _, rows = self._rows("SELECT count() FROM readings")
        return int(next(rows)[0])

    def q3(self):
        """Mean of each field."""
        return self._means("SELECT field, avg(value) FROM readings", "avg")
