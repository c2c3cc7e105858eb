"""SQLite through Python's own module, statement by statement, modelled on SQLite's speedtest1.

python3 job.py DATABASE ROWS --check | --results FILE: each phase is marked and reported, and each statement in it is an
operation of its kind.
"""

import json
import random
import sqlite3
import sys

from opjoule_marks import operation, phase
from opjoule_study import Results

ROW_BYTES = 200
"""Bytes of a row with its entry in the index, and half as much again for the journal."""

path, rows, last = sys.argv[1], int(sys.argv[2]), sys.argv[-1]
if last == "--check":
    print(json.dumps({"bytes": rows * ROW_BYTES}))
    sys.exit(0)
results = Results(last)
results.made_by(f"SQLite {sqlite3.sqlite_version}")
draw = random.Random(1)
order = list(range(rows))
draw.shuffle(order)
database = sqlite3.connect(path, isolation_level=None)

with phase("create"):
    database.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, value INTEGER, name TEXT)")
results.add("create")
with phase("insert"):
    database.execute("BEGIN")
    for key in order:
        with operation("insert"):
            database.execute("INSERT INTO numbers VALUES (?, ?, ?)", (key, draw.randrange(rows), f"number {key}"))
    database.execute("COMMIT")
results.add("insert", operations=rows)
with phase("index"):
    database.execute("CREATE INDEX by_value ON numbers (value)")
results.add("index")
with phase("select"):
    for _ in range(rows):
        with operation("select"):
            database.execute("SELECT name FROM numbers WHERE value = ?", (draw.randrange(rows),)).fetchall()
results.add("select", operations=rows)
with phase("update"):
    database.execute("BEGIN")
    for key in order:
        with operation("update"):
            database.execute("UPDATE numbers SET value = ? WHERE id = ?", (draw.randrange(rows), key))
    database.execute("COMMIT")
results.add("update", operations=rows)
with phase("delete"):
    database.execute("BEGIN")
    for key in order[: rows // 2]:
        with operation("delete"):
            database.execute("DELETE FROM numbers WHERE id = ?", (key,))
    database.execute("COMMIT")
left = database.execute("SELECT count(*) FROM numbers").fetchone()[0]
results.add("delete", operations=rows // 2, answer=left)
database.close()
print(f"{left} of {rows} rows left")
