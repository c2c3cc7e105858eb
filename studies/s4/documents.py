"""MongoDB: one document for each point, in one collection."""

import datetime

from queries import THRESHOLD

_NOT_IMPLEMENTED = 238
"""Error code of a server that speaks MongoDB's protocol but lacks a command."""
_MEANS = [{"$group": {"_id": "$field", "mean": {"$avg": "$value"}}}]
EPOCH = datetime.datetime(1970, 1, 1)


def _row(point):
    at_ms = (point["timestamp"] - EPOCH) // datetime.timedelta(milliseconds=1)
    return at_ms, point["value"], point.get("field", "temperature"), point["sensor"]


class MongoDb:
    """MongoDB through pymongo, with w=1 and a plain collection, which every version since 3.6 supports."""

    def __init__(self, address):
        import pymongo

        self._client = pymongo.MongoClient(address, w=1, serverSelectionTimeoutMS=30_000)
        self._points = self._client["study"]["readings"]
        self.cannot = {}
        """Query -> reason why this server does not answer it; known after create()."""
        self.stand_in = ""

    def version(self):
        """The server's version; also finds out whether another server stands in for mongod."""
        info = self._client.server_info()
        if "ferretdbVersion" in info:
            other = ", FerretDB: not mongod"
        else:
            other = "" if info.get("gitVersion") else ", a stand-in: not mongod"
        self.stand_in = "MongoDB" if other else ""
        return info["version"] + other

    def create(self):
        """Creates an empty collection."""
        import pymongo.errors

        self._client.drop_database("study")
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
