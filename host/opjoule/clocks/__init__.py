"""Clocks and the maps between them: meter_ns, board_ns, host_ns."""
