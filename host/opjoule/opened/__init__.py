"""A record as it is read: its answer, its trace on one time axis, lists of many; and in other formats."""
