"""What runs on a board: the probe, workloads, a disturbance; and how their programs get there."""
