"""A server of MongoDB's protocol that keeps one marker, and copies as much of mongod's answers as is asked."""

import contextlib
import socketserver
import struct
import threading

import bson

HEADER = struct.Struct("<iiii")
OP_MSG, OP_QUERY, OP_REPLY = 2013, 2004, 1
COMMIT = "6d9ec525e78465dcecadcff99cce953d380fedc8"
BUILD = {
    "version": "7.0.2",
    "gitVersion": COMMIT,
    "javascriptEngine": "mozjs",
    "allocator": "tcmalloc",
    "buildEnvironment": {"cc": "gcc 11.3", "target_arch": "aarch64", "target_os": "linux"},
    "storageEngines": ["devnull", "wiredTiger"],
}
COPIES = ("build", "statistics", "table", "counts")
"""What a made server may copy, each with those before it: the last of them makes it look like mongod in all."""


class MadeMongod(socketserver.ThreadingTCPServer):
    """Answers the few commands that a client asks on its way to the server's name."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, copies, build=BUILD, kind="timeseries"):
        super().__init__(("127.0.0.1", 0), _Connection)
        self.copies, self.build, self.kind = copies, build, kind
        self.calls, self.stored, self.created = 0, {}, set()

    @property
    def address(self):
        return f"mongodb://127.0.0.1:{self.server_address[1]}"

    def answer(self, asked):
        name = next(iter(asked))
        known = getattr(self, f"_{name.lower()}", None)
        return {**(known(asked) if known else {}), "ok": 1.0}

    def _hello(self, _asked):
        return {"isWritablePrimary": True, "ismaster": True, "maxWireVersion": 21, "minWireVersion": 0}

    _ismaster = _hello

    def _buildinfo(self, _asked):
        return self.build if "build" in self.copies else {"version": "7.0.2", "gitVersion": self.build["gitVersion"]}

    def _serverstatus(self, _asked):
        engine = {"storageEngine": {"name": "wiredTiger"}}
        if "statistics" not in self.copies:
            return engine
        cursor = {"cursor insert calls": self.calls, "cursor search calls": self.calls}
        return engine | {
            "wiredTiger": {
                "cache": {"maximum bytes configured": 1 << 28},
                "transaction": {"transaction begins": 7},
                "block-manager": {"blocks written": 3},
                "cursor": cursor,
            }
        }

    def _collstats(self, _asked):
        uri = "statistics:table:collection-0-1" if "table" in self.copies else "a copy"
        return {"wiredTiger": {"uri": uri}}

    def _create(self, asked):
        self.created.add(asked["create"])
        return {}

    def _drop(self, asked):
        self.created.discard(asked["drop"])
        return {}

    def _listcollections(self, asked):
        name = asked["filter"]["name"]
        made = [{"name": name, "type": self.kind}] if name in self.created else []
        return {"cursor": {"id": 0, "ns": f"{asked['$db']}.$cmd.listCollections", "firstBatch": made}}

    def _count(self):
        self.calls += "counts" in self.copies

    def _insert(self, asked):
        for document in asked["documents"]:
            self._count()
            self.stored[document["_id"]] = document
        return {"n": len(asked["documents"])}

    def _update(self, asked):
        (update,) = asked["updates"]
        self.stored[update["q"]["_id"]] = update["u"]
        return {"n": 1, "nModified": 1}

    def _find(self, asked):
        self._count()
        found = self.stored.get(asked.get("filter", {}).get("_id"))
        return {"cursor": {"id": 0, "ns": f"{asked['$db']}.{asked['find']}", "firstBatch": [found] if found else []}}

    def _aggregate(self, asked):
        return {"cursor": {"id": 0, "ns": f"{asked['$db']}.{asked['aggregate']}", "firstBatch": []}}


class _Connection(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(HEADER.size):
            length, request, _, operation = HEADER.unpack(head)
            asked = _asked(self.rfile.read(length - HEADER.size), operation)
            reply = bson.encode(self.server.answer(asked))
            if operation == OP_QUERY:
                body, operation = struct.pack("<iqii", 8, 0, 0, 1) + reply, OP_REPLY
            else:
                body = struct.pack("<iB", 0, 0) + reply
            self.wfile.write(HEADER.pack(HEADER.size + len(body), 1, request, operation) + body)


def _asked(body, operation):
    """The command of a message, with the documents of its second section."""
    if operation == OP_QUERY:
        return bson.decode(body[body.index(b"\0", 4) + 9 :])
    at, asked, listed = 4, {}, {}
    while at < len(body):
        (size,) = struct.unpack_from("<i", body, at + 1)
        part = body[at + 1 : at + 1 + size]
        if body[at] == 0:
            asked = bson.decode(part)
        else:
            end = part.index(b"\0", 4)
            listed[part[4:end].decode()] = bson.decode_all(part[end + 1 :])
        at += 1 + size
    return {**asked, **listed}


@contextlib.contextmanager
def made_mongod(copies, build=BUILD, kind="timeseries"):
    """Yields a made server that listens on a free port."""
    with MadeMongod(copies, build, kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
