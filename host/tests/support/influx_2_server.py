"""The part of InfluxDB 2.x that the study uses, on loopback, as documented for its interface."""

import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit


class Influx2(BaseHTTPRequestHandler):
    """Setup, tokens, names of buckets, /write and /query as in InfluxDB 2.x's documentation."""

    version = "v2.7.11"

    def log_message(self, *_):
        """Logs nothing."""

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/ping":
            return self._answer(204, **{"X-Influxdb-Version": self.version})
        if not self._is_let_in("/query", query):
            return self._answer(401, b'{"code":"unauthorized","message":"unauthorized access"}')
        return self._answer(200, self._rows(query["q"]).encode())

    def do_POST(self):
        url, body = urlsplit(self.path), self.rfile.read(int(self.headers["Content-Length"]))
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        server = self.server
        if url.path == "/api/v2/setup":
            server.setup = json.loads(body)
            return self._answer(201, b'{"bucket": {"id": "b1"}, "org": {"id": "o1"}}')
        if self.headers["Authorization"] != f"Token {server.setup.get('token')}":
            return self._answer(401, b'{"code":"unauthorized","message":"unauthorized access"}')
        if url.path == "/api/v2/dbrps":
            named = json.loads(body)
            assert (named["bucketID"], named["orgID"]) == ("b1", "o1")
            server.databases.add(named["database"])
            return self._answer(201, b"{}")
        if url.path != "/write" or not self._is_let_in("/write", query):
            return self._answer(404, b'{"code":"not found","message":"no dbrp mapping found"}')
        assert query["precision"] == "ms" and self.headers["Content-Type"].startswith("text/plain")
        server.lines += body.decode().splitlines()
        return self._answer(204)

    def _is_let_in(self, path, query):
        has_token = self.headers["Authorization"] == f"Token {self.server.setup.get('token')}"
        return has_token and query.get("db") in self.server.databases

    def _rows(self, query):
        values = [line.split(" value=")[1].split()[0] for line in self.server.lines]
        if "count(" in query:
            return f"name,tags,time,count\nreadings,,0,{len(values)}\n"
        if "mean(" in query:
            return "name,tags,time,mean\nreadings,field=humidity,0,40\nreadings,field=temperature,0,20.5\n"
        chosen = values if '"field", "sensor"' in query else values[:1]
        head = "name,tags,time,value,sensor\n"
        return "".join(f"{head}readings,,0,{value},s1\n" for value in chosen)  # each chunk with its head

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if status != 204 or name != "Content-Length":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
