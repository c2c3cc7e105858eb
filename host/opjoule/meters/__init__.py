"""Power meters: one interface, the serial meter of firmware/, and the capture that records one."""
