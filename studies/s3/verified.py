"""Check of the answers by two independent computations: plain Python's and SQLite's in memory.

Each system's answers are compared with plain Python's. Berkeley DB has no queries and answers with the same functions.
Before any measurement, these functions are therefore compared with SQL on the same sample.
"""

import sqlite3

import answers
from opjoule_study import WrongAnswer
from phases import ABOVE, PAIR, K, Parameters
from sql_systems import INSERT, Sqlite


class InMemory(Sqlite):
    """SQLite without a file."""

    def __init__(self, rows):
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._execute = self._connection.execute
        self._execute(self.time_sql.table())
        self._connection.executemany(INSERT, map(self.row, rows))


def verify(readings, seed):
    """Compares the two computations. Raises: WrongAnswer: they differ."""
    asked = Parameters(readings, seed)
    system = InMemory(readings)
    questions = {
        "LAST_READINGS": system.last_readings,
        "AVG_SENSOR": system.avg_sensor,
        "HOT_SENSORS": lambda: system.hot_sensors(ABOVE, asked.at_least, K),
        "ANOMALIES": system.anomalies,
        "DAILY_SUMMARY": system.daily_summary,
        "OUTAGES": system.outages,
        "TOPK_SENSORS": lambda: system.topk_sensors(K),
        "COMPARE_TWO": lambda: system.compare_two(*PAIR),
    }
    for name, ask in questions.items():
        why = answers.difference(system.plain(ask()), asked.expected(name, 0))
        if why:
            raise WrongAnswer(f"{name} by SQL and by plain Python: {why}")
    system.close()
