"""`view`: the page of all runs."""
