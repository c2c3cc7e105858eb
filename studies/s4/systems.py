"""The systems: MongoDB with one document for each point, InfluxDB and QuestDB over HTTP (line protocol in, CSV out)."""

import csv
import datetime
import io
import json
import re
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request

from points import THRESHOLD

_NOT_IMPLEMENTED = 238
"""Error code of a server that speaks MongoDB's protocol but lacks a command."""
_MEANS = [{"$group": {"_id": "$field", "mean": {"$avg": "$value"}}}]
PLAIN, TIME_SERIES = "plain", "timeseries"
"""Kinds of collection; MongoDB has those of time series since 5.0."""
_BY_TIME = {"timeField": "timestamp", "metaField": "sensor"}
EPOCH = datetime.datetime(1970, 1, 1)
_COMMIT = re.compile("(?!(.)\\1{39})[0-9a-f]{40}")
"""A commit of mongod's source: hexadecimal digits that are not all the same."""
_OF_BUILD = ("javascriptEngine", "allocator", "buildEnvironment.cc", "buildEnvironment.target_arch")
_OF_WIREDTIGER = (
    "wiredTiger.cache.maximum bytes configured",
    "wiredTiger.transaction.transaction begins",
    "wiredTiger.block-manager.blocks written",
    "wiredTiger.cursor.cursor insert calls",
)
_STAND_INS = {"ferretdbVersion": "FerretDB", "secantusVersion": "SecantusDB"}
"""Field of a stand-in's build information -> its name."""
_INSERTED = 8


def _row(point):
    at_ms = (point["timestamp"] - EPOCH) // datetime.timedelta(milliseconds=1)
    return at_ms, point["value"], point.get("field", "temperature"), point["sensor"]


def _at(document, dotted_name):
    """The value of a field in nested documents; None if it is missing."""
    for name in dotted_name.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


class MongoDb:
    """MongoDB through pymongo, with w=1. Every version since 3.6 supports a plain collection."""

    def __init__(self, address, collection=PLAIN):
        import pymongo

        self._client = pymongo.MongoClient(address, w=1, serverSelectionTimeoutMS=30_000)
        self._points = self._client["study"]["readings"]
        self._collection = collection
        self.cannot = {}
        """Query -> reason why this server does not answer it; known after create()."""

    def version(self):
        """The server's version."""
        return self._client.server_info()["version"]

    def other_server(self):
        """What answers in mongod's place, in words; empty if the server has proved that it is mongod."""
        info = self._client.server_info()
        if not (lacks := self._proof_lacks(info)):
            return ""
        named = [name for field, name in _STAND_INS.items() if field in info]
        return f"{named[0]}, a stand-in: not mongod" if named else f"a stand-in: not mongod, {lacks}"

    def _proof_lacks(self, info):
        """What the server lacks that every mongod from 3.6 on has; empty if nothing.

        Stand-ins copy single fields of mongod's answers. They have no statistics of its storage engine that count
        what they are asked, and no WiredTiger table under a collection.
        """
        import pymongo.errors

        is_built = all(isinstance(_at(info, name), str) and _at(info, name) for name in _OF_BUILD)
        is_built = is_built and isinstance(info.get("storageEngines"), list)
        if not is_built or not _COMMIT.fullmatch(str(info.get("gitVersion"))):
            return "its build information is incomplete"
        database = self._client["study"]
        try:
            database["proof"].drop()
            database["proof"].insert_one({})
            before = self._engine_counts()
            if not all(isinstance(count, (int, float)) for count in before) or not before[0]:
                return "it has no statistics of WiredTiger"
            database["proof"].insert_many([{} for _ in range(_INSERTED)])
            inserted = self._engine_counts()[-1] - before[-1]
            uri = _at(database.command("collStats", "proof"), "wiredTiger.uri")
            database["proof"].drop()
        except pymongo.errors.OperationFailure as error:
            return str((error.details or {}).get("errmsg") or error)
        if not str(uri).startswith("statistics:table:"):
            return "its collections are no tables of WiredTiger"
        return "" if inserted >= _INSERTED else "WiredTiger does not count its inserts"

    def lacks_time_series(self):
        """Whether a collection of time series was asked for, and the server makes a plain one of it without a word."""
        if self._collection != TIME_SERIES:
            return False
        database = self._client["study"]
        database["proof"].drop()
        database.create_collection("proof", timeseries=_BY_TIME)
        kinds = [made.get("type") for made in database.list_collections(filter={"name": "proof"})]
        database["proof"].drop()
        return kinds != ["timeseries"]

    def _engine_counts(self):
        status = self._client.admin.command("serverStatus")
        return [_at(status, name) for name in _OF_WIREDTIGER]

    def create(self):
        """Creates an empty collection."""
        import pymongo.errors

        self._client.drop_database("study")
        if self._collection == TIME_SERIES:
            self._client["study"].create_collection("readings", timeseries=_BY_TIME)
        try:
            self.q3()
        except pymongo.errors.OperationFailure as error:
            if error.code != _NOT_IMPLEMENTED:
                raise
            self.cannot["Q3"] = (error.details or {}).get("errmsg") or str(error)

    def insert(self, points):
        """Inserts one batch and waits for the acknowledgement."""
        millisecond = datetime.timedelta(milliseconds=1)
        documents = [
            {"timestamp": EPOCH + at * millisecond, "value": value, "field": field, "sensor": sensor}
            for at, value, field, sensor in points
        ]
        self._points.insert_many(documents, ordered=False)

    def settle(self, count):
        """Does nothing, as every acknowledged point can be read."""

    def count(self):
        """Number of points."""
        return self._points.count_documents({})

    def _values(self, points):
        count, total = 0, 0.0
        for point in points:
            count += 1
            total += point["value"]
        return [count, total]

    def _find_all(self):
        return self._points.find({}, {"_id": False})

    def _find_warm(self):
        return self._points.find({"field": "temperature", "value": {"$gt": THRESHOLD}}, {"_id": False, "field": False})

    def q1(self):
        """Every point."""
        return self._values(self._find_all())

    def q1_rows(self):
        """The same as (timestamp [ms], value, field, sensor)."""
        return map(_row, self._find_all())

    def q2(self):
        """Warm points."""
        return self._values(self._find_warm())

    def q2_rows(self):
        """The same as (timestamp [ms], value, field, sensor)."""
        return map(_row, self._find_warm())

    def q3(self):
        """Mean of each field."""
        means = {group["_id"]: group["mean"] for group in self._points.aggregate(_MEANS)}
        return [means.get("temperature"), means.get("humidity")]

    def close(self):
        """Closes the connections."""
        self._client.close()


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
