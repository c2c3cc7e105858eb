"""The quantities of a YCSB workload on a key-value store."""

from opjoule.record.result_tables import YCSB

QUANTITIES = YCSB
