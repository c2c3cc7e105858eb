"""Programs on a board: the probe, workloads, a disturbance; and their installation."""
