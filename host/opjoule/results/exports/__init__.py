"""Exports of a record to formats of other programs."""
