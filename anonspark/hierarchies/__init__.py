"""Hierarchies of values: from each single value over groups of values to everything, without Spark.

- :mod:`~anonspark.hierarchies.hierarchy` is the tree: its leaves in order and its groups.
- :mod:`~anonspark.hierarchies.files` reads a hierarchy from the text of a CSV file, and
  :mod:`~anonspark.hierarchies.reading` finds such files on any file system.
- :mod:`~anonspark.hierarchies.rules` builds one over the values that occur: intervals of numbers,
  masked codes, months and years.
"""
