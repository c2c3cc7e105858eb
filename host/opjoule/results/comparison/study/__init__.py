"""Tables of a study's phases over its systems and sizes."""
