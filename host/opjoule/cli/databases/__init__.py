"""`databases`: what can be measured where."""
