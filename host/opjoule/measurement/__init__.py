"""One measurement: plan, run, align, result."""
