"""Reading of records: the answer, the trace on one time axis, lists of many records, and exports."""
