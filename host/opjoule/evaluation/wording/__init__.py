"""What each kind of study says of its results."""
