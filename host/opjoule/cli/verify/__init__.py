"""`verify`: whether a record is as it was written."""
