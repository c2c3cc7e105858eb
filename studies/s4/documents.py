"""MongoDB: one document for each point, in one collection, plain or of time series."""

import datetime
import re

from queries import THRESHOLD

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
