"""The project's own meter: the firmware's messages over a serial port, turned into samples."""
