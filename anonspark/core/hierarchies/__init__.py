"""Hierarchies of values: from each single value over groups of values to everything.

- :mod:`~anonspark.core.hierarchies.hierarchy` is the tree: its leaves in order and its groups.
- :mod:`~anonspark.core.hierarchies.files` reads a hierarchy from the text of a CSV file.
- :mod:`~anonspark.core.hierarchies.hierarchy` builds one over the values that occur: intervals of
  numbers, masked codes, first characters, months, years and decades.
"""
