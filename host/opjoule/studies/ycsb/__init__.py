"""YCSB on a database of this project's loader: property files, counts, distributions, the Java generator (study S1)."""

from opjoule.studies.ycsb.study import YcsbStudy

__all__ = ["YcsbStudy"]
