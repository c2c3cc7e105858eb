"""SQLite through Python's own module, statement by statement, after the idea of SQLite's speedtest1.

python3 job.py DATABASE [ROWS]: each phase is marked, and each statement in it is an operation of its kind.
"""

import random
import sqlite3
import sys

from opjoule_marks import operation, phase

path, rows = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
draw = random.Random(1)
order = list(range(rows))
draw.shuffle(order)
database = sqlite3.connect(path, isolation_level=None)

with phase("create"):
    database.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, value INTEGER, name TEXT)")
with phase("insert"):
    database.execute("BEGIN")
    for key in order:
        with operation("insert"):
            database.execute(
                "INSERT INTO numbers VALUES (?, ?, ?)", (key, draw.randrange(rows), f"number {key}")
            )
    database.execute("COMMIT")
with phase("index"):
    database.execute("CREATE INDEX by_value ON numbers (value)")
with phase("select"):
    for _ in range(rows):
        with operation("select"):
            database.execute("SELECT name FROM numbers WHERE value = ?", (draw.randrange(rows),)).fetchall()
with phase("update"):
    database.execute("BEGIN")
    for key in order:
        with operation("update"):
            database.execute("UPDATE numbers SET value = ? WHERE id = ?", (draw.randrange(rows), key))
    database.execute("COMMIT")
with phase("delete"):
    database.execute("BEGIN")
    for key in order[: rows // 2]:
        with operation("delete"):
            database.execute("DELETE FROM numbers WHERE id = ?", (key,))
    database.execute("COMMIT")
left = database.execute("SELECT count(*) FROM numbers").fetchone()[0]
database.close()
print(f"{left} of {rows} rows left")
