"""One measurement up to the record's raw/: the plan, its execution, settling, recording, progress."""
