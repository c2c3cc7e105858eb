"""`runs`: the records there are."""
