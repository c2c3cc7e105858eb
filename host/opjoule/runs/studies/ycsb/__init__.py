"""YCSB on a database of this project's loader: property files, counts, distributions, the Java generator (study S1)."""
